import { formatTable } from "../harness/format-table.ts";
import { shorten } from "../faults/report.ts";
import type { AttackRow } from "./attack.ts";

const titles = ["attack", "what was tried", "promised", "seen", "held"] as const;

/** The rows as a table that is also Markdown. */
export function reportOf(rows: readonly AttackRow[]): string {
  return formatTable(
    titles,
    rows.map(({ attack, tried, promised, seen, held }) => [
      attack,
      tried,
      promised,
      shorten(seen),
      held ? "yes" : "NO",
    ]),
  );
}
