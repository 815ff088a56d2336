import { axeFindings, type Visitor } from "./browser.ts";
import { layoutShifts } from "./layout-shift.ts";

/**
 * What is wrong with a page in a state: what axe finds, whether it is wider than the screen, and what moved by itself since it
 * was opened. Each fault begins with the state.
 */
export async function faultsOf(
  { page, hasScript }: Pick<Visitor, "page" | "hasScript">,
  state: string,
): Promise<string[]> {
  const moved = (await layoutShifts(page)).map((shift) => `moved by ${shift.value}: ${shift.moved.join("; ")}`);
  const wide = await page.locator("html").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth);
  // Without scripts in the page axe cannot run.
  const findings = hasScript ? await axeFindings(page) : [];
  return [...findings, ...(wide > 0 ? [`${wide} px too wide`] : []), ...moved].map((fault) => `${state}: ${fault}`);
}
