import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type PageState, type Viewer, withState } from "./open-state.ts";

/** Writes a screenshot of each state at each width, light and dark, as `NAME-WIDTH-light.png` and `NAME-WIDTH-dark.png`. */
export async function takeShots(
  viewer: Viewer,
  states: readonly PageState[],
  { out, widths }: { out: string; widths: readonly number[] },
): Promise<void> {
  await mkdir(out, { recursive: true });
  for (const state of states)
    for (const width of widths)
      for (const dark of [false, true]) {
        const path = join(out, `${state.name}-${width}-${dark ? "dark" : "light"}.png`);
        await withState(
          viewer,
          state,
          { width, dark },
          { use: (page) => page.screenshot({ path, fullPage: state.isScreen !== true }) },
        );
      }
}
