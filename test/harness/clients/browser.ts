import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import type { Service } from "../processes/service.ts";
import { chromiumPath } from "./chromium.ts";
import { forgetSignIns } from "./page-visitor.ts";

// For each profile, Chromium loads two pages for its address bar and a process in reserve: a third of the CPU of a short visit.
const featuresOfPerson = [
  "WebUIOmniboxPopup",
  "WebUIOmniboxAimPopup",
  "WebUIOmniboxFullPopup",
  "SpareRendererForSitePerProcess",
];
// Playwright disables these too, and the last switch counts.
const featuresOfPlaywright = ["PaintHolding", "HttpsUpgrades", "AvoidUnnecessaryBeforeUnloadCheckSync", "MediaRouter"];

export async function openBrowser(): Promise<Browser> {
  // No host name resolves: a request to another site fails, and the test sees it.
  const args = [
    "--no-sandbox",
    "--disable-gpu",
    `--disable-features=${[...featuresOfPerson, ...featuresOfPlaywright].join(",")}`,
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.0.0.1",
  ];
  return chromium.launch({ executablePath: chromiumPath, args });
}

export interface Visitor {
  context: BrowserContext;
  page: Page;
  /** Requests to other origins than those given; and errors and warnings of the page's policy and script. */
  foreign: string[];
  complaints: string[];
  /** Whether scripts run in its pages. */
  hasScript: boolean;
}

/** A person with their own browser profile. */
export async function visitor(
  browser: Browser,
  origins: readonly string[],
  looks: { width?: number; dark?: boolean; script?: boolean } = {},
): Promise<Visitor> {
  const hasScript = looks.script ?? true;
  const context = await browser.newContext({
    viewport: { width: looks.width ?? 1280, height: 900 },
    colorScheme: looks.dark ? "dark" : "light",
    javaScriptEnabled: hasScript,
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
  return { context, page: await context.newPage(), foreign, complaints, hasScript };
}

/** Opens a page of the account, and signs in on the form that it shows. */
export async function signInAt(page: Page, service: Service, address: string, token: string): Promise<void> {
  await forgetSignIns(service);
  await page.goto(address);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
}

/** The findings of axe on a page, each as `rule: elements`; `without` disables rules. */
export async function axeFindings(page: Page, without: readonly string[] = []): Promise<string[]> {
  // By the debugger protocol, which the page's policy does not restrict. A page that has it already runs it compiled.
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axe.source);
  const rules = Object.fromEntries(without.map((rule) => [rule, { enabled: false }]));
  const options: axe.RunOptions = { rules, resultTypes: ["violations"] };
  const run = (chosen: typeof options) => (globalThis as unknown as { axe: typeof axe }).axe.run(chosen);
  const { violations } = await page.evaluate(run, options);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target }) => target.join(" ")).join(", ")}`);
}
