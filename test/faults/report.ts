import { formatTable } from "../../shared/admin/format-table.ts";

/** One promise and what became of it when somebody tried to break it. */
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

/** The rows as a table that is also Markdown. */
export function reportOf(rows: readonly Row[]): string {
  return formatTable(
    titles,
    rows.map(({ what, promised, seen, held }) => [what, promised, seen, held ? "yes" : "NO"]),
  );
}

/** Says a line of progress, for people who wait. */
export type Say = (line: string) => void;
