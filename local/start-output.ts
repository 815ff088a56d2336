import { styleText } from "node:util";

/** What `npm start` prints. Colours depend on the terminal and on NO_COLOR; without a terminal there are neither colours nor borders. */

const labelWidth = 12;
const clearLine = "\r\u001b[2K";

let hasPending = false;

/** Prints lines as they are. */
export function print(text: string): void {
  process.stdout.write(`${hasPending ? clearLine : ""}${text}\n`);
  hasPending = false;
}

/** Prints a step that is done. */
export const say = (label: string, text: string): void => print(`${styleText("green", "✓")} ${labelled(label)}${text}`);

/** Shows a step that may take a while, on a terminal until the next line is printed. */
export function begin(label: string, text: string): void {
  const shown = (words: string) => `${styleText("cyan", "…")} ${styleText("dim", words)}`;
  const words = `${labelled(label)}${text}`;
  if (!process.stdout.isTTY) return print(shown(words));
  // A line that wraps could not be cleared as a whole.
  process.stdout.write(`${clearLine}${shown(words.slice(0, process.stdout.columns - 3))}`);
  hasPending = true;
}

/** Prints a warning as one line. */
export const warn = (label: string, text: string): void =>
  print(`${styleText("yellow", "!")} ${labelled(label)}${text.replaceAll(/\s*\n\s*/g, " ")}`);

/** Prints what keeps the service from running. */
export const fail = (text: string): void => print(`\n${styleText("red", "✗")} ${text}`);

const labelled = (label: string) => label.padEnd(labelWidth);

/** Prints rows of a label and a value, in a box on a terminal that is wide enough for it. */
export function printBox(title: string, rows: readonly (readonly [label: string, value: string])[]): void {
  const lines = rows.map(([label, value]) => `${labelled(label)}${value}`);
  const width = Math.max(title.length + 1, ...lines.map((line) => line.length));
  if (!process.stdout.isTTY || process.stdout.columns < width + 4)
    return print(["", styleText("bold", title), ...lines.map((line) => `  ${line}`)].join("\n"));
  const border = (text: string) => styleText("green", text);
  print(`\n${border("╭─")} ${styleText("bold", title)} ${border(`${"─".repeat(width - title.length - 1)}╮`)}`);
  for (const line of lines) print(`${border("│")} ${line.padEnd(width)} ${border("│")}`);
  print(border(`╰${"─".repeat(width + 2)}╯`));
}
