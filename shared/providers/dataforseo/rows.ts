import { type RawLink, ratingText } from "../build-element.ts";

/** An object of an answer of which nothing is known yet: every part is looked at before it is used. */
export type Row = Readonly<Record<string, unknown>>;

/** Links lie in the element, in its items, and in the parts of its items. */
const linkDepthMax = 3;
/** More than any list on a page of results has. */
const listRowsMax = 500;
const partsMax = 50;
const digitsKept = 12;

/** Lists of things that are no links of an element: `images` belong to one that stands there anyway. */
const noLinks = new Set(["images", "rectangle", "highlighted"]);
const names = ["title", "question_text", "alt", "tweet", "featured_title"];
const answers = ["description", "snippet", "answer_text", "text", "subtitle", "featured_title", "refine_type"];
const sources = ["source", "seller", "author", "location", "contract_type", "salary"];
const dates = ["date", "job_posted_time", "timestamp"];
const durations = ["time", "time_to_play"];

/** The first of these parts that has a text; "" where none has. */
export function first(row: Row | undefined, ...parts: readonly string[]): string {
  for (const part of parts) {
    const found = textOf(row?.[part]);
    if (found !== "") return found;
  }
  return "";
}

/** A text, or a number without the noise of binary fractions; "" for everything else. */
export function textOf(value: unknown): string {
  if (typeof value === "string") return withoutEdges(value, blanksAndMarks);
  return typeof value === "number" && Number.isFinite(value) ? String(Number(value.toPrecision(digitsKept))) : "";
}

/** The texts of a list, or the one text that stands in its place. */
export function textsOf(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).map(textOf).filter((text) => text !== "");
}

/** The objects of a list, or the one that stands in its place. */
export function rowsOf(value: unknown): Row[] {
  return (Array.isArray(value) ? value : [value]).filter(isRow);
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Source · 2 days ago`. */
export function line(...words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

/** What stands in one line with dots between: `Rating: 4 · 231 reviews · In stock`. */
export function partsOf(text: string): string[] {
  return text.split("·", partsMax).map((part) => withoutEdges(part, dashes));
}

/** LRM and RLM at an edge order nothing any more. */
const blanksAndMarks = new Set([" ", "\n", "\t", "\u00a0", "\u200e", "\u200f"]);
const dashes = new Set([...blanksAndMarks, "—", "–"]);

/** Walked and not matched: a pattern that looks for the end takes a long text for each of its blanks anew. */
function withoutEdges(text: string, edges: ReadonlySet<string>): string {
  let from = 0;
  let to = text.length;
  while (from < to && edges.has(text.charAt(from))) from += 1;
  while (to > from && edges.has(text.charAt(to - 1))) to -= 1;
  return text.slice(from, to);
}

/** `4.8 (1,234)`; `92% (12)` and `8.5/10` where the best is not five. */
export function ratingOf(row: Row): string {
  const [rating] = rowsOf(row["rating"]);
  const value = first(rating, "value");
  if (value === "") return "";
  const type = rating?.["rating_type"];
  const best = first(rating, "rating_max");
  const scale = type === "Percents" ? "%" : type === "CustomMax" && best !== "" ? `/${best}` : "";
  return ratingText(value + scale, first(rating, "votes_count"));
}

/** As it is displayed, else as a number with its currency. */
export function priceOf(row: Row): string {
  const [price] = rowsOf(row["price"]);
  const current = first(price, "current");
  return first(price, "displayed_price") || (current && [current, first(price, "currency")].join(" ").trim());
}

/** The words of the page, else the day of the time stamp: `2 hours ago`, `2020-09-11`. */
export function dateOf(row: Row): string {
  const date = first(row, ...dates);
  return /^\d{4}-\d\d-\d\d[ T]\d/.test(date) ? date.slice(0, 10) : date;
}

/** The rows of a table as lines: `Mkt cap: 549B` where there are two columns, else all with dots between. */
export function tableOf(row: Row): string[] {
  const [table] = rowsOf(row["table"]);
  const content = table?.["table_content"];
  const lines = [table?.["table_header"], ...(Array.isArray(content) ? content : [])].map(textsOf);
  return lines.map((cells) => (cells.length === 2 ? cells.join(": ") : line(...cells))).filter((text) => text !== "");
}

/** One thing that an element holds, described by its price, source, date and text. */
export function linkOf(row: Row): RawLink {
  const inside = insideOf(row);
  const title = first(row, ...names) || (first(row, "url") && first(row, "source", "description", "domain"));
  const text = first(row, ...answers) || answerOf(inside);
  return {
    title,
    url: urlOf(row) || urlOf(inside),
    description: line(
      priceOf(row),
      ...sources.map((part) => first(row, part)),
      dateOf(row),
      ...durations.map((part) => first(row, part)),
      ratingOf(row),
      first(row, "phone"),
      text === title ? "" : text,
    ),
  };
}

/** A question with its answer alone; with the source where none was given. */
export function questionOf(row: Row): RawLink {
  const inside = insideOf(row);
  const answer = first(row, "answer_text", "description", "snippet") || answerOf(inside);
  return {
    title: first(row, ...names),
    url: urlOf(row) || urlOf(inside) || urlOf(rowsOf(inside?.["references"])[0]),
    description: answer || first(row, "source") || first(inside, "source", "title", "domain"),
  };
}

/** What opens below a row: the answer to a question, or who mentions a product. */
function insideOf(row: Row): Row | undefined {
  return rowsOf(row["expanded_element"])[0] ?? rowsOf(row["mentioned_in"])[0];
}

function answerOf(inside: Row | undefined): string {
  if (inside === undefined) return "";
  const told = first(inside, "description", "snippet", "text", "featured_title");
  return (
    told ||
    line(...tableOf(inside)) ||
    rowsOf(inside["items"])
      .map((part) => first(part, "text"))
      .join(" ")
  );
}

function urlOf(row: Row | undefined): string {
  const isImage = first(row, "type").endsWith("images_element");
  return first(row, "url", ...(isImage ? ["image_url"] : []));
}

/** Everything that an element links to, in its order: its lists, their parts, and single links; words alone where it lists words. */
export function linksIn(row: Row, depth = linkDepthMax): RawLink[] {
  return Object.entries(row).flatMap(([part, value]) => {
    if (noLinks.has(part)) return [];
    if (part === "items") return listIn(value, depth, true);
    return Array.isArray(value) || part === "link" ? listIn(value, depth, false) : [];
  });
}

function listIn(value: unknown, depth: number, takesWords: boolean): RawLink[] {
  const words =
    takesWords && Array.isArray(value)
      ? textsOf(value)
          .slice(0, listRowsMax)
          .map((title) => ({ title }))
      : [];
  const links = rowsOf(value)
    .slice(0, listRowsMax)
    .flatMap((row) => {
      const below = depth > 1 ? linksIn(row, depth - 1) : [];
      const own = linkOf(row);
      // A row that only holds others, `Songs`, is no link of its own.
      return own.url === "" && below.length > 0 ? below : [own, ...below];
    });
  return [...words, ...links];
}
