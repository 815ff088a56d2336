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
export function tableOf(rows: readonly Row[]): string {
  const cells = rows.map(({ what, promised, seen, held }) => [what, promised, seen, held ? "yes" : "NO"]);
  const widths = titles.map((title, column) =>
    Math.max(...[[...titles], ...cells].map((row) => row[column]?.length ?? 0), title.length),
  );
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`;
  return [line(titles), line(widths.map((width) => "-".repeat(width))), ...cells.map(line)].join("");
}

/** Says a line of progress, for people who wait. */
export type Say = (line: string) => void;
