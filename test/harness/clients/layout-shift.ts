import type { Page } from "playwright-core";
import { z } from "zod";

const shift = z.object({ value: z.number(), moved: z.array(z.string()) });

export type LayoutShift = z.infer<typeof shift>;

/** Chromium may paint a page whose HTML has not arrived whole, and a line that grows then moves what is below it. Good is 0.1. */
const shiftMax = 0.02;

/**
 * What moved on a page without the person having done anything, since it was opened: how much, as in Cumulative Layout Shift,
 * and which elements. The browser keeps the first 150 shifts.
 * @returns nothing if all of it together is less than a person sees.
 */
export async function layoutShifts(page: Page): Promise<LayoutShift[]> {
  const shifts = z.array(shift).parse(await page.evaluate(script));
  return shifts.reduce((sum, { value }) => sum + value, 0) < shiftMax ? [] : shifts;
}

// Text, because it is evaluated in the page and uses browser globals that Node does not have.
const script = `(() => {
  const observer = new PerformanceObserver(() => undefined);
  observer.observe({ type: "layout-shift", buffered: true });
  const place = ({ x, y, width, height }) => [x, y, width, height].map(Math.round).join(" ");
  const nameOf = ({ node, previousRect, currentRect }) =>
    (node?.id ? "#" + node.id : node?.className || node?.nodeName || "?") + ": " + place(previousRect) + " to " + place(currentRect);
  return observer.takeRecords()
    .filter(({ hadRecentInput }) => !hadRecentInput)
    .map(({ value, sources }) => ({ value, moved: sources.map(nameOf) }));
})()`;
