import type { Browser, Page } from "playwright-core";
import { forgetPageViews, forgetSignIns, type PageVisitor } from "../harness/clients/page-visitor.ts";
import type { Service } from "../harness/processes/service.ts";

const height = 900;

/** A browser, and the service whose pages it opens. */
export interface Viewer {
  browser: Browser;
  service: Service;
}

/** A page in a state: who looks at it, where, and what they did before. */
export interface PageState {
  name: string;
  url: string;
  /** The status of the address; 200 without it. */
  status?: number;
  /** Absent if the person is not signed in. */
  visitor?: PageVisitor;
  /** What the person does on the page before they see the state. */
  act?: (page: Page) => Promise<void>;
  /** The page draws only what is on the screen, so a screenshot shows no more. */
  isScreen?: boolean;
}

export interface Look {
  width: number;
  dark?: boolean;
}

/**
 * Opens a page in a state, in a new browser profile, and uses it once it is complete.
 * @param prepare runs before the page is opened, for example to listen to its requests.
 * @throws {Error} if the page has another status than its state, because a screenshot must not show an error page instead.
 */
export async function withState<T>(
  { browser, service }: Viewer,
  { name, url, status = 200, visitor, act }: PageState,
  { width, dark = false }: Look,
  { prepare, use }: { prepare?: (page: Page) => Promise<void>; use: (page: Page) => Promise<T> },
): Promise<T> {
  await forgetPageViews(service);
  await forgetSignIns(service);
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  try {
    if (visitor?.cookie !== undefined) await context.setExtraHTTPHeaders({ cookie: visitor.cookie });
    const page = await context.newPage();
    await prepare?.(page);
    const answer = await page.goto(url);
    if (answer?.status() !== status) throw new Error(`${name}: ${url} has the status ${String(answer?.status())}`);
    await act?.(page);
    await complete(page);
    return await use(page);
  } finally {
    await context.close();
  }
}

/** Waits until a page has its files and the first live updates. */
async function complete(page: Page): Promise<void> {
  await page.waitForLoadState("load");
  if ((await page.locator("[data-live]").count()) > 0) {
    await page.locator("#live.on").waitFor();
    await page.locator("[data-html]").first().waitFor({ state: "attached" });
  }
  // Two frames later everything is painted.
  await page.evaluate("new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)))");
}
