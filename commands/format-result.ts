import stringWidth from "string-width";
import { resultInUsd } from "./money.ts";

/**
 * The result of a command as text for a terminal. The fields of an object are lines, a list of objects is a table. A table
 * that is wider than the terminal has its texts shortened, never ids and numbers; if that is not enough, it becomes
 * lines too, as in psql's expanded display.
 */

const gap = "  ";
/** Shorter texts say nothing. */
const textWidthMin = 16;

type Fields = Record<string, unknown>;

/** Writes a result, or the part of it that a terminal shows, as lines. */
export type FormatResult = (result: object) => string;

/** @param columns the width of the terminal. @returns lines, each with its line break. */
export function formatResult(result: object, columns: number, inUsd = false): string {
  // As JSON has it: times are ISO 8601 texts, and what is undefined is left out.
  const json: unknown = JSON.parse(JSON.stringify(result));
  const shown = inUsd ? resultInUsd(json) : json;
  if (!isFields(shown)) return `${cellOf(shown)}\n`;
  const fields = Object.entries(shown).filter(([, value]) => !isList(value));
  const sections = Object.entries(shown).flatMap(([name, value]) =>
    isList(value) ? [formatList(name, value, columns)] : [],
  );
  return [...(fields.length > 0 ? [formatFields(fields)] : []), ...sections].join("\n");
}

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** An amount in dollars is a text, which keeps its last zeros. */
const isAmount = (name: string) => /(^d|D)ollars$/.test(name);

const isNumeric = (values: readonly unknown[]) =>
  values.some((value) => typeof value === "number") &&
  values.every((value) => typeof value === "number" || value === null || value === undefined);

/** A list of texts is a field, such as the scopes of a token. An empty list is one of objects, except among fields of a row. */
const isList = (value: unknown): value is Fields[] => Array.isArray(value) && value.every(isFields);

function formatList(name: string, rows: readonly Fields[], columns: number): string {
  if (rows.length === 0) return `${labelOf(name)}: none\n`;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => names.map((field) => cellOf(row[field])));
  const isNumber = names.map((field) => isAmount(field) || isNumeric(rows.map((row) => row[field])));
  const table = formatColumns({ titles: names.map(labelOf), cells, isNumber }, columns);
  return table ?? rows.map((row) => formatFields(Object.entries(row))).join("\n");
}

function formatFields(fields: readonly (readonly [string, unknown])[]): string {
  const labels = fields.map(([name]) => labelOf(name));
  const width = Math.max(...labels.map((label) => label.length));
  return fields.map(([, value], at) => `${labels[at]?.padEnd(width)}${gap}${cellOf(value)}\n`).join("");
}

interface Table {
  titles: string[];
  cells: string[][];
  /** By column: numbers are aligned to the right. */
  isNumber: boolean[];
}

/** @returns undefined if the table does not fit. */
function formatColumns({ titles, cells, isNumber }: Table, columns: number): string | undefined {
  const widths = titles.map((title, at) => Math.max(title.length, ...cells.map((row) => stringWidth(row[at] ?? ""))));
  const isText = titles.map((_, at) => cells.some((row) => row[at]?.includes(" ")));
  const excess = () => widths.reduce((sum, width) => sum + width + gap.length, -gap.length) - columns;
  while (excess() > 0) {
    const widest = Math.max(...widths.filter((_, at) => isText[at]));
    if (widest <= textWidthMin) return undefined;
    widths[widths.findIndex((width, at) => isText[at] && width === widest)] = widest - 1;
  }
  const pad = (cell: string, at: number) => {
    const width = widths[at] ?? 0;
    const blanks = " ".repeat(Math.max(0, width - stringWidth(cell)));
    return isNumber[at] ? blanks + cell : cell + blanks;
  };
  const line = (row: readonly string[]) =>
    `${row
      .map((cell, at) => pad(shorten(cell, widths[at] ?? 0), at))
      .join(gap)
      .trimEnd()}\n`;
  return [line(titles), line(widths.map((width) => "─".repeat(width))), ...cells.map(line)].join("");
}

function shorten(cell: string, width: number): string {
  if (stringWidth(cell) <= width) return cell;
  let kept = "";
  for (const { segment } of new Intl.Segmenter().segment(cell)) {
    if (stringWidth(kept + segment) > width - 1) break;
    kept += segment;
  }
  return `${kept}…`;
}

const units: Record<string, string> = { mils: "mils", dollars: "USD", ms: "ms", seconds: "seconds", days: "days" };

/** `balanceMils` as `balance (mils)`, and `createdAt` as `created`. */
function labelOf(name: string): string {
  const words = name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).split(" ");
  const last = words.at(-1) ?? "";
  if (words.length > 1 && last === "at") return words.slice(0, -1).join(" ");
  const unit = words.length > 1 ? units[last] : undefined;
  return unit === undefined ? words.join(" ") : `${words.slice(0, -1).join(" ")} (${unit})`;
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length === 0 ? "-" : value.map(cellOf).join(", ");
  if (isFields(value))
    return Object.entries(value)
      .map(([name, field]) => `${labelOf(name)}: ${cellOf(field)}`)
      .join(", ");
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return printable(text.replace(/^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d{3}Z$/, "$1Z"));
}

/** Without characters that a terminal would obey: texts come from callers, and may move its cursor or turn the line around. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\u{${code.toString(16)}}`;
  });
}
