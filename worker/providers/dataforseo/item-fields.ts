import { filled, isPunctuated, joinWithDots, ratingText, unwrapLines } from "../build-element.ts";
import { type Fields, isObject, readRows } from "../read-rows.ts";

const partsMax = 50;
const digitsKept = 12;

const priceFields = ["displayed_price", "current", "max_value", "regular", "currency"];
const dateFields = ["date", "job_posted_time", "timestamp"];

/** The text of the first of these fields that has one; "" if none has. */
export function firstText(row: Fields | undefined, ...fields: readonly string[]): string {
  for (const field of fields) {
    const text = toText(row?.[field]);
    if (text !== "") return text;
  }
  return "";
}

/** The texts of these fields, without those that have none. */
export function textsOf(row: Fields, fields: readonly string[]): string[] {
  return filled(fields.map((field) => toText(row[field])));
}

/** A text in one line, or a number rounded to 12 digits, which hides binary fractions; "" for everything else. */
function toText(value: unknown): string {
  if (typeof value === "string")
    return value.includes("\n")
      ? unwrapLines(value.split("\n").map((line) => trimCharacters(line, spaces)))
      : trimCharacters(value, spaces);
  return typeof value === "number" && Number.isFinite(value) ? String(Number(value.toPrecision(digitsKept))) : "";
}

/** The texts of a list, or of a single value in place of a list. */
export function toTexts(value: unknown): string[] {
  if (value === undefined || value === null) return [];
  return filled((Array.isArray(value) ? value : [value]).map(toText));
}

/** The objects of a list, or a single object in place of a list. */
export function toRows(value: unknown): Fields[] {
  if (value === undefined || value === null) return [];
  return (Array.isArray(value) ? value : [value]).filter(isObject);
}

/** `Rating: 4 · 231 reviews · In stock` → `Rating: 4`, `231 reviews`, `In stock`. */
export function splitAtDots(text: string): string[] {
  if (text === "") return [];
  return text.split("·", partsMax).map((part) => trimCharacters(part, spacesAndDashes));
}

/** `Step 1: Fill it.` */
export function underHeading(heading: string, text: string): string {
  if (heading === "" || text === "") return heading || text;
  return `${heading}${isPunctuated(heading) ? "" : ":"} ${text}`;
}

/** Includes LRM and RLM, which have no effect at the ends of a text. */
const spaces = new Set([" ", "\n", "\t", "\u00a0", "\u200e", "\u200f"]);
const spacesAndDashes = new Set([...spaces, "—", "–"]);

/** A loop and not a regular expression: one that matches up to the end rescans a long text from each of its spaces. */
function trimCharacters(text: string, trimmed: ReadonlySet<string>): string {
  let from = 0;
  let to = text.length;
  while (from < to && trimmed.has(text.charAt(from))) from += 1;
  while (to > from && trimmed.has(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

/** `4.8 (1,234)`; `92% (12)` or `8.5/10` if the scale does not end at five; `(1,234)` for votes alone. */
export function formatRating(row: Fields): string {
  const [rating] = toRows(row["rating"]);
  const votes = firstText(rating, "votes_count") || firstText(row, "reviews_count");
  const value = firstText(rating, "value");
  if (value === "") return votes === "0" ? "" : ratingText("", votes);
  const type = rating?.["rating_type"];
  const best = firstText(rating, "rating_max");
  const scale = type === "Percents" ? "%" : type === "CustomMax" && best !== "" ? `/${best}` : "";
  return ratingText(value + scale, votes);
}

/** The price as displayed, or else its numbers and the currency. Then the price without the discount, if there is one. */
export function formatPrices(row: Fields): string[] {
  const [price] = toRows(row["price"]);
  if (price === undefined) return [];
  const [displayed = "", current = "", most = "", regular = "", currency = ""] = priceFields.map((field) =>
    firstText(price, field),
  );
  const range = most === "" || most === current ? current : `${current}–${most}`;
  const withCurrency = (amount: string) => amount && `${amount} ${currency}`.trim();
  return [displayed || withCurrency(range), regular === current ? "" : withCurrency(regular)];
}

/** The date as displayed, or else the day of the timestamp: `2 hours ago`, `2020-09-11`. The days of a stay at a hotel. */
export function formatDate(row: Fields): string {
  return formatTime(firstText(row, ...dateFields) || toTexts([row["date_from"], row["date_to"]]).join(" – "));
}

/** The day of a point in time: `2020-09-11 00:00:00 +00:00` or `09/11/2020 00:00:00` → `2020-09-11`. Other texts as they are. */
export function formatTime(text: string): string {
  if (/^\d{4}-\d\d-\d\d[ T]\d/.test(text)) return text.slice(0, 10);
  const [, month, day, year] = /^(\d\d)\/(\d\d)\/(\d{4}) \d\d:\d\d:\d\d$/.exec(text) ?? [];
  return year === undefined ? text : `${year}-${month}-${day}`;
}

/** The rows of a table as lines: `Mkt cap: 549B` for two columns, otherwise all cells joined with dots. */
export function tableLines(row: Fields): string[] {
  const [table] = toRows(row["table"]);
  if (table === undefined) return [];
  const content = table["table_content"];
  const lines = [table["table_header"], ...(Array.isArray(content) ? content : [])].map(toTexts);
  return filled(lines.map((cells) => (cells.length === 2 ? cells.join(": ") : joinWithDots(...cells))));
}

/** An item of the page. Only its type is known to exist. */
export type Item = Fields & { readonly type: string };

/** The items that can be read, and the number of the others. */
export function readableItems(rows: readonly unknown[]): { items: Item[]; unreadableRows: number } {
  const { found, unreadableRows } = readRows(rows, (row) => (isReadable(row) ? row : undefined));
  return { items: found, unreadableRows };
}

function isReadable(row: unknown): row is Item {
  return isObject(row) && typeof row["type"] === "string" && row["type"] !== "" && isComplete(row);
}

/** An organic result needs a URL and a title. A title may be null, their value for none; a missing one is a change of the format. */
function isComplete({ type, title, url }: Fields): boolean {
  return type !== "organic" || (typeof url === "string" && (typeof title === "string" || title === null));
}
