import type { Page, Request } from "playwright-core";
import { z } from "zod";
import { axeFindings } from "../harness/clients/browser.ts";
import { type LayoutShift, layoutShifts } from "../harness/clients/layout-shift.ts";
import { type Look, type PageState, type Viewer, withState } from "./open-state.ts";

/** What a page costs a browser with an empty cache. */
export interface PageFigures {
  requests: number;
  /** The response bodies as sent, some of them compressed; and decompressed. */
  sentBytes: number;
  bytes: number;
  /** First Contentful Paint, from the beginning of the navigation. */
  firstPaintMs: number;
  shifts: LayoutShift[];
  /** Requests to other origins; and errors and warnings of the page's policy and script. */
  foreign: string[];
  complaints: string[];
  /** By how much the page is wider than the screen. */
  tooWidePx: number;
  /** The findings of axe, if it ran. */
  findings?: string[];
}

/** Lighthouse's slow phone: 1.6 Mbit/s, 150 ms per round trip, a quarter of the CPU. */
const slowLine = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 93_750 };
const slowCpu = { rate: 4 };

/** Opens a page in a state and measures it. @param look.hasAxe whether axe also checks the page. */
export async function measureState(
  viewer: Viewer,
  state: PageState,
  look: Look & { isSlow?: boolean; hasAxe?: boolean },
): Promise<PageFigures> {
  const requests: Request[] = [];
  const complaints: string[] = [];
  const { origin } = new URL(state.url);
  return withState(viewer, state, look, {
    prepare: async (page) => {
      page.on("request", (request) => {
        // The page before a submitted form belongs to another state.
        if (request.isNavigationRequest()) requests.length = 0;
        requests.push(request);
      });
      page.on("pageerror", ({ message }) => complaints.push(message));
      page.on("console", (message) => {
        if (["error", "warning"].includes(message.type())) complaints.push(message.text());
      });
      await limit(page, look.isSlow ?? false);
    },
    use: async (page) => ({
      ...(await weightOf(requests)),
      firstPaintMs: z.number().parse(await page.evaluate(firstPaintScript)),
      shifts: await layoutShifts(page),
      foreign: requests
        .map((request) => request.url())
        .filter((url) => !url.startsWith("data:") && !url.startsWith(origin)),
      // The browser reports each page that is no 200.
      complaints: complaints.filter((text) => !text.startsWith("Failed to load resource: ")),
      tooWidePx: await page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth),
      ...(look.hasAxe && { findings: await axeFindings(page) }),
    }),
  });
}

async function limit(page: Page, isSlow: boolean): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  if (!isSlow) return;
  await devtools.send("Network.emulateNetworkConditions", slowLine);
  await devtools.send("Emulation.setCPUThrottlingRate", slowCpu);
}

/** Sums the sizes of responses, without streams of live updates, which do not end. */
async function weightOf(requests: readonly Request[]) {
  const ended = requests.filter((request) => request.resourceType() !== "eventsource");
  const sizes = await Promise.all(
    ended.map(async (request) => {
      const [{ responseBodySize }, response] = await Promise.all([request.sizes(), request.response()]);
      return { sent: responseBodySize, bytes: (await response?.body())?.length ?? 0 };
    }),
  );
  const sum = (of: (size: { sent: number; bytes: number }) => number) =>
    sizes.reduce((total, size) => total + of(size), 0);
  return { requests: ended.length, sentBytes: sum(({ sent }) => sent), bytes: sum(({ bytes }) => bytes) };
}

// A string, because it runs in the page and uses globals that Node does not have.
const firstPaintScript = `new Promise((seen) => {
  new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach(({ startTime }) => seen(startTime)))
    .observe({ type: "paint", buffered: true });
})`;
