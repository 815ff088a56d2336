import { formatTable } from "../harness/format-table.ts";

/** One promise and whether it held. */
export interface Row {
  /** What was tried. */
  what: string;
  /** What was promised, in words or figures. */
  promised: string;
  /** What was seen. */
  seen: string;
  held: boolean;
}

const titles = ["what was tried", "promised", "seen", "held"] as const;
// A longer sentence makes every line of the table too wide for a terminal; all of it was printed while the run went on.
const lengthMax = 240;

/** The rows as a table that is also Markdown. */
export function reportOf(rows: readonly Row[]): string {
  return formatTable(
    titles,
    rows.map(({ what, promised, seen, held }) => [what, promised, shorten(seen), held ? "yes" : "NO"]),
  );
}

/** A sentence that fits into the table. */
export const shorten = (text: string) => (text.length > lengthMax ? `${text.slice(0, lengthMax)} …` : text);

/** Prints a line of progress. */
export type Say = (line: string) => void;
