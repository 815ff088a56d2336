import { formatTable } from "../harness/format-table.ts";
import { measureState, type PageFigures } from "../shots/measure.ts";
import { withViewer } from "../shots/viewer.ts";
import { median } from "./results.ts";

const width = 1440;
const phoneWidth = 390;

/** Measures the weight and the first paint of every page in its states, each with an empty cache. @returns a table. */
export async function measurePages(
  { rounds, only }: { rounds: number; only: string },
  say: (line: string) => void,
): Promise<string> {
  const rows: string[][] = [];
  await withViewer(async (viewer, states) => {
    for (const state of states.filter(({ name }) => name.includes(only))) {
      say(state.name);
      const figures: { fast: PageFigures; slow: PageFigures }[] = [];
      for (let round = 0; round < rounds; round += 1) {
        const fast = await measureState(viewer, state, { width });
        figures.push({ fast, slow: await measureState(viewer, state, { width: phoneWidth, isSlow: true }) });
      }
      rows.push(rowOf(state.name, figures));
    }
  });
  return formatTable(["page", "requests", "sent kB", "content kB", "first paint ms", "on a slow phone ms"], rows);
}

function rowOf(name: string, figures: readonly { fast: PageFigures; slow: PageFigures }[]): string[] {
  const middle = (of: (figure: (typeof figures)[number]) => number) => median(figures.map(of)) ?? Number.NaN;
  const kb = (bytes: number) => (bytes / 1_000).toFixed(1);
  return [
    name,
    String(middle(({ fast }) => fast.requests)),
    kb(middle(({ fast }) => fast.sentBytes)),
    kb(middle(({ fast }) => fast.bytes)),
    middle(({ fast }) => fast.firstPaintMs).toFixed(0),
    middle(({ slow }) => slow.firstPaintMs).toFixed(0),
  ];
}
