/** Formats rows as a Markdown table with aligned columns. Each row has a cell for each title. */
export function formatTable(titles: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = titles.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |\n`;
  return [line(titles), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("");
}
