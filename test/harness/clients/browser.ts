import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { chromiumPath } from "./chromium.ts";

export async function openBrowser(): Promise<Browser> {
  // No name is looked up: a page that asks for anything elsewhere does not get it, and the test sees that it asked.
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
  ];
  return chromium.launch({ executablePath: chromiumPath, args });
}

export interface Visitor {
  context: BrowserContext;
  page: Page;
  /** Addresses that were asked for outside of the origins given, and what the page's policy or script complained of. */
  foreign: string[];
  complaints: string[];
}

/** A person with a browser of their own. */
export async function visitor(
  browser: Browser,
  origins: readonly string[],
  looks: { width?: number; dark?: boolean; script?: boolean } = {},
): Promise<Visitor> {
  const context = await browser.newContext({
    viewport: { width: looks.width ?? 1280, height: 900 },
    colorScheme: looks.dark ? "dark" : "light",
    javaScriptEnabled: looks.script ?? true,
    locale: "en-GB",
  });
  const foreign: string[] = [];
  const complaints: string[] = [];
  context.on("request", (request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol !== "data:" && !origins.includes(origin)) foreign.push(request.url());
  });
  context.on("weberror", (error) => complaints.push(error.error().message));
  context.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  return { context, page: await context.newPage(), foreign, complaints };
}

/** What axe finds on a page, each as `rule: places`; without the rules that are named. */
export async function axeFindings(page: Page, without: readonly string[] = []): Promise<string[]> {
  // Through the debugger's door, which the page's own policy does not close.
  await page.evaluate(axe.source);
  const rules = Object.fromEntries(without.map((rule) => [rule, { enabled: false }]));
  const run = (options: axe.RunOptions) => (globalThis as unknown as { axe: typeof axe }).axe.run(options);
  const { violations } = await page.evaluate(run, { rules });
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
}
