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
export function firstText(row: Row | undefined, ...parts: readonly string[]): string {
  for (const part of parts) {
    const found = toText(row?.[part]);
    if (found !== "") return found;
  }
  return "";
}

/** A text, or a number without the noise of binary fractions; "" for everything else. */
export function toText(value: unknown): string {
  if (typeof value === "string") return withoutEdges(value, blanksAndMarks);
  return typeof value === "number" && Number.isFinite(value) ? String(Number(value.toPrecision(digitsKept))) : "";
}

/** The texts of a list, or the one text that stands in its place. */
export function toTexts(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).map(toText).filter((text) => text !== "");
}

/** The objects of a list, or the one that stands in its place. */
export function toRows(value: unknown): Row[] {
  return (Array.isArray(value) ? value : [value]).filter(isRow);
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Source · 2 days ago`. */
export function joinWithDots(...words: readonly string[]): string {
  return words.filter((word) => word !== "").join(" · ");
}

/** What stands in one line with dots between: `Rating: 4 · 231 reviews · In stock`. */
export function splitAtDots(text: string): string[] {
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
export function formatRating(row: Row): string {
  const [rating] = toRows(row["rating"]);
  const value = firstText(rating, "value");
  if (value === "") return "";
  const type = rating?.["rating_type"];
  const best = firstText(rating, "rating_max");
  const scale = type === "Percents" ? "%" : type === "CustomMax" && best !== "" ? `/${best}` : "";
  return ratingText(value + scale, firstText(rating, "votes_count"));
}

/** As it is displayed, else as a number with its currency. */
export function formatPrice(row: Row): string {
  const [price] = toRows(row["price"]);
  const current = firstText(price, "current");
  return firstText(price, "displayed_price") || (current && [current, firstText(price, "currency")].join(" ").trim());
}

/** The words of the page, else the day of the time stamp: `2 hours ago`, `2020-09-11`. */
export function formatDate(row: Row): string {
  const date = firstText(row, ...dates);
  return /^\d{4}-\d\d-\d\d[ T]\d/.test(date) ? date.slice(0, 10) : date;
}

/** The rows of a table as lines: `Mkt cap: 549B` where there are two columns, else all with dots between. */
export function tableLines(row: Row): string[] {
  const [table] = toRows(row["table"]);
  const content = table?.["table_content"];
  const lines = [table?.["table_header"], ...(Array.isArray(content) ? content : [])].map(toTexts);
  return lines
    .map((cells) => (cells.length === 2 ? cells.join(": ") : joinWithDots(...cells)))
    .filter((text) => text !== "");
}

/** One thing that an element holds, described by its price, source, date and text. */
export function toLink(row: Row): RawLink {
  const inside = insideOf(row);
  const title =
    firstText(row, ...names) || (firstText(row, "url") && firstText(row, "source", "description", "domain"));
  const text = firstText(row, ...answers) || answerOf(inside);
  return {
    title,
    url: urlOf(row) || urlOf(inside),
    description: joinWithDots(
      formatPrice(row),
      ...sources.map((part) => firstText(row, part)),
      formatDate(row),
      ...durations.map((part) => firstText(row, part)),
      formatRating(row),
      firstText(row, "phone"),
      text === title ? "" : text,
    ),
  };
}

/** A question with its answer alone; with the source where none was given. */
export function toQuestionLink(row: Row): RawLink {
  const inside = insideOf(row);
  const answer = firstText(row, "answer_text", "description", "snippet") || answerOf(inside);
  return {
    title: firstText(row, ...names),
    url: urlOf(row) || urlOf(inside) || urlOf(toRows(inside?.["references"])[0]),
    description: answer || firstText(row, "source") || firstText(inside, "source", "title", "domain"),
  };
}

/** What opens below a row: the answer to a question, or who mentions a product. */
function insideOf(row: Row): Row | undefined {
  return toRows(row["expanded_element"])[0] ?? toRows(row["mentioned_in"])[0];
}

function answerOf(inside: Row | undefined): string {
  if (inside === undefined) return "";
  const told = firstText(inside, "description", "snippet", "text", "featured_title");
  return (
    told ||
    joinWithDots(...tableLines(inside)) ||
    toRows(inside["items"])
      .map((part) => firstText(part, "text"))
      .join(" ")
  );
}

function urlOf(row: Row | undefined): string {
  const isImage = firstText(row, "type").endsWith("images_element");
  return firstText(row, "url", ...(isImage ? ["image_url"] : []));
}

/** Everything that an element links to, in its order: its lists, their parts, and single links; words alone where it lists words. */
export function collectLinks(row: Row, depth = linkDepthMax): RawLink[] {
  return Object.entries(row).flatMap(([part, value]) => {
    if (noLinks.has(part)) return [];
    if (part === "items") return listIn(value, depth, true);
    return Array.isArray(value) || part === "link" ? listIn(value, depth, false) : [];
  });
}

function listIn(value: unknown, depth: number, takesWords: boolean): RawLink[] {
  const words =
    takesWords && Array.isArray(value)
      ? toTexts(value)
          .slice(0, listRowsMax)
          .map((title) => ({ title }))
      : [];
  const links = toRows(value)
    .slice(0, listRowsMax)
    .flatMap((row) => {
      const below = depth > 1 ? collectLinks(row, depth - 1) : [];
      const own = toLink(row);
      // A row that only holds others, `Songs`, is no link of its own.
      return own.url === "" && below.length > 0 ? below : [own, ...below];
    });
  return [...words, ...links];
}
