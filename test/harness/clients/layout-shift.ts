import type { Page } from "playwright-core";
import { z } from "zod";

const shift = z.object({ value: z.number(), moved: z.array(z.string()) });

export type LayoutShift = z.infer<typeof shift>;

/**
 * What moved on a page without the person having done anything, since it was opened: how much, as in Cumulative Layout Shift,
 * and which elements. The browser keeps the first 150 shifts.
 */
export async function layoutShifts(page: Page): Promise<LayoutShift[]> {
  return z.array(shift).parse(await page.evaluate(script));
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
