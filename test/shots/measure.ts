import type { Page, Request } from "playwright-core";
import { z } from "zod";
import { axeFindings } from "../harness/clients/browser.ts";
import { type LayoutShift, layoutShifts } from "../harness/clients/layout-shift.ts";
import { spokenFaults } from "../harness/clients/spoken-faults.ts";
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
  /** By how much the page is wider than the screen, at most, of the widths at which it was looked at. */
  tooWidePx: number;
  /** The findings of axe and of the accessibility tree, and texts that are cut off, if they were asked for. */
  findings: string[];
}

/** Lighthouse's slow phone: 1.6 Mbit/s, 150 ms per round trip, a quarter of the CPU. */
const slowLine = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 93_750 };
const slowCpu = { rate: 4 };

/**
 * Opens a page in a state and measures it.
 * @param look.next another look at the page, without loading it again.
 * @param look.hasAxe whether axe, the accessibility tree and cut texts are also checked, in both looks.
 */
export async function measureState(
  viewer: Viewer,
  state: PageState,
  look: Look & { next?: Required<Look>; isSlow?: boolean; hasAxe?: boolean },
): Promise<PageFigures> {
  const requests: Request[] = [];
  const complaints: string[] = [];
  const { origin } = new URL(state.url);
  return withState(viewer, state, look, {
    prepare: async (page) => {
      page.on("request", (request) => requests.push(request));
      // The page before a submitted form belongs to another state, up to the response: it may still ask for its icon.
      page.on("response", (response) => {
        const request = response.request();
        if (request.isNavigationRequest()) requests.splice(0, Infinity, request);
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
      // Last: the second look is no part of what the page weighs and shifts while it loads.
      ...(await lookAt(page, look)),
    }),
  });
}

async function lookAt(page: Page, { next, hasAxe }: { next?: Required<Look>; hasAxe?: boolean }) {
  const overflowPx = () => page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
  const findingsOf = async () =>
    hasAxe ? [...(await axeFindings(page)), ...(await spokenFaults(page)), ...(await cutTexts(page))] : [];
  const first = { tooWidePx: await overflowPx(), findings: await findingsOf() };
  if (!next) return first;
  await page.setViewportSize({ width: next.width, height: page.viewportSize()?.height ?? 0 });
  await page.emulateMedia({ colorScheme: next.dark ? "dark" : "light" });
  await page.evaluate(changedScript);
  return {
    tooWidePx: Math.max(first.tooWidePx, await overflowPx()),
    findings: [...first.findings, ...(await findingsOf())],
  };
}

const cutTexts = async (page: Page) => z.array(z.string()).parse(await page.evaluate(cutTextsScript));

async function limit(page: Page, isSlow: boolean): Promise<void> {
  const devtools = await page.context().newCDPSession(page);
  await devtools.send("Network.enable");
  await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
  if (!isSlow) return;
  await devtools.send("Network.emulateNetworkConditions", slowLine);
  await devtools.send("Emulation.setCPUThrottlingRate", slowCpu);
}

/** Sums the sizes of responses, without streams of live updates, which do not end, and the typeface, which all pages share. */
async function weightOf(requests: readonly Request[]) {
  const ended = requests.filter((request) => !["eventsource", "font"].includes(request.resourceType()));
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

// Strings, because they run in the page and use globals that Node does not have.
/** Waits until colours have changed: some do so in a transition, which begins with the next frame. */
const changedScript = `new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted))).then(() =>
  Promise.all(document.getAnimations().filter((one) => one instanceof CSSTransition).map(({ finished }) => finished)))
  .then(() => undefined)`;

/** Elements that hide a part of their text and do not say so with an ellipsis. Those with a clip path are for screen readers. */
const cutTextsScript = `[...document.querySelectorAll("body *")].filter((element) => {
  const { overflowX, overflowY, textOverflow, clipPath } = getComputedStyle(element);
  const isCut = (overflow, size, room) => /hidden|clip/.test(overflow) && clipPath === "none" && size > room + 1;
  const isCutWide = textOverflow !== "ellipsis" && isCut(overflowX, element.scrollWidth, element.clientWidth);
  return isCutWide || isCut(overflowY, element.scrollHeight, element.clientHeight);
}).map(({ outerHTML }) => "cut off: " + outerHTML.slice(0, 100))`;

const firstPaintScript = `new Promise((seen) => {
  new PerformanceObserver((list) => list.getEntriesByName("first-contentful-paint").forEach(({ startTime }) => seen(startTime)))
    .observe({ type: "paint", buffered: true });
})`;
