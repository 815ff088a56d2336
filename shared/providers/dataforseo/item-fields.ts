import { joinWithDots, type RawLink, ratingText } from "../build-element.ts";

/** An object of an answer whose fields are unknown: each is checked before it is used. */
export type Row = Readonly<Record<string, unknown>>;

/** Links are found in the element, in its items, and in the parts of its items. */
const linkDepthMax = 3;
/** No list on a page of results is longer. */
const listRowsMax = 500;
const partsMax = 50;
const digitsKept = 12;

/** Lists whose members are not links of the element: the `images` of an element repeat its own link. */
const fieldsWithoutLinks = new Set(["images", "rectangle", "highlighted"]);
const titleFields = ["title", "question_text", "alt", "tweet", "featured_title"];
const textFields = ["description", "snippet", "answer_text", "text", "subtitle", "featured_title", "refine_type"];
const sourceFields = ["source", "seller", "author", "location", "contract_type", "salary"];
const dateFields = ["date", "job_posted_time", "timestamp"];
const durationFields = ["time", "time_to_play"];

/** The text of the first of these fields that has one; "" if none has. */
export function firstText(row: Row | undefined, ...fields: readonly string[]): string {
  for (const field of fields) {
    const text = toText(row?.[field]);
    if (text !== "") return text;
  }
  return "";
}

/** A text without spaces at its ends, or a number rounded to 12 digits, which hides binary fractions; "" for everything else. */
export function toText(value: unknown): string {
  if (typeof value === "string") return trimCharacters(value, spaces);
  return typeof value === "number" && Number.isFinite(value) ? String(Number(value.toPrecision(digitsKept))) : "";
}

/** The texts of a list, or of a single value in place of a list. */
export function toTexts(value: unknown): string[] {
  return (Array.isArray(value) ? value : [value]).map(toText).filter((text) => text !== "");
}

/** The objects of a list, or a single object in place of a list. */
export function toRows(value: unknown): Row[] {
  return (Array.isArray(value) ? value : [value]).filter(isRow);
}

function isRow(value: unknown): value is Row {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Rating: 4 · 231 reviews · In stock` → `Rating: 4`, `231 reviews`, `In stock`. */
export function splitAtDots(text: string): string[] {
  return text.split("·", partsMax).map((part) => trimCharacters(part, spacesAndDashes));
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

/** `4.8 (1,234)`; `92% (12)` or `8.5/10` if the scale does not end at five. */
export function formatRating(row: Row): string {
  const [rating] = toRows(row["rating"]);
  const value = firstText(rating, "value");
  if (value === "") return "";
  const type = rating?.["rating_type"];
  const best = firstText(rating, "rating_max");
  const scale = type === "Percents" ? "%" : type === "CustomMax" && best !== "" ? `/${best}` : "";
  return ratingText(value + scale, firstText(rating, "votes_count"));
}

/** The price as displayed, or else the number and its currency. */
export function formatPrice(row: Row): string {
  const [price] = toRows(row["price"]);
  const current = firstText(price, "current");
  return firstText(price, "displayed_price") || (current && [current, firstText(price, "currency")].join(" ").trim());
}

/** The date as displayed, or else the day of the timestamp: `2 hours ago`, `2020-09-11`. */
export function formatDate(row: Row): string {
  const date = firstText(row, ...dateFields);
  return /^\d{4}-\d\d-\d\d[ T]\d/.test(date) ? date.slice(0, 10) : date;
}

/** The rows of a table as lines: `Mkt cap: 549B` for two columns, otherwise all cells joined with dots. */
export function tableLines(row: Row): string[] {
  const [table] = toRows(row["table"]);
  const content = table?.["table_content"];
  const lines = [table?.["table_header"], ...(Array.isArray(content) ? content : [])].map(toTexts);
  return lines
    .map((cells) => (cells.length === 2 ? cells.join(": ") : joinWithDots(...cells)))
    .filter((text) => text !== "");
}

/** A member of an element as a link, described by its price, source, date and text. */
export function toLink(row: Row): RawLink {
  const expanded = expandedRow(row);
  const title =
    firstText(row, ...titleFields) || (firstText(row, "url") && firstText(row, "source", "description", "domain"));
  const text = firstText(row, ...textFields) || answerText(expanded);
  return {
    title,
    url: urlOf(row) || urlOf(expanded),
    description: joinWithDots(
      formatPrice(row),
      ...sourceFields.map((field) => firstText(row, field)),
      formatDate(row),
      ...durationFields.map((field) => firstText(row, field)),
      formatRating(row),
      firstText(row, "phone"),
      text === title ? "" : text,
    ),
  };
}

/** A question as a link, described by its answer alone, or by its source if it has no answer. */
export function toQuestionLink(row: Row): RawLink {
  const expanded = expandedRow(row);
  const answer = firstText(row, "answer_text", "description", "snippet") || answerText(expanded);
  return {
    title: firstText(row, ...titleFields),
    url: urlOf(row) || urlOf(expanded) || urlOf(toRows(expanded?.["references"])[0]),
    description: answer || firstText(row, "source") || firstText(expanded, "source", "title", "domain"),
  };
}

/** The part that a page shows below a row when it is opened: the answer to a question, or the pages that mention a product. */
function expandedRow(row: Row): Row | undefined {
  return toRows(row["expanded_element"])[0] ?? toRows(row["mentioned_in"])[0];
}

function answerText(expanded: Row | undefined): string {
  if (expanded === undefined) return "";
  return (
    firstText(expanded, "description", "snippet", "text", "featured_title") ||
    joinWithDots(...tableLines(expanded)) ||
    toRows(expanded["items"])
      .map((part) => firstText(part, "text"))
      .join(" ")
  );
}

function urlOf(row: Row | undefined): string {
  const isImage = firstText(row, "type").endsWith("images_element");
  return firstText(row, "url", ...(isImage ? ["image_url"] : []));
}

/** All links of an element, in its order: from its lists, their parts and its single links. A text in `items` becomes a link without a URL. */
export function collectLinks(row: Row, depth = linkDepthMax): RawLink[] {
  return Object.entries(row).flatMap(([field, value]) => {
    if (fieldsWithoutLinks.has(field)) return [];
    if (field === "items") return linksOfList(value, depth, { withTexts: true });
    return Array.isArray(value) || field === "link" ? linksOfList(value, depth, { withTexts: false }) : [];
  });
}

function linksOfList(value: unknown, depth: number, { withTexts }: { withTexts: boolean }): RawLink[] {
  const texts =
    withTexts && Array.isArray(value)
      ? toTexts(value)
          .slice(0, listRowsMax)
          .map((title) => ({ title }))
      : [];
  const links = toRows(value)
    .slice(0, listRowsMax)
    .flatMap((row) => {
      const inner = depth > 1 ? collectLinks(row, depth - 1) : [];
      const own = toLink(row);
      // A row that only groups others, such as `Songs`, is not a link itself.
      return own.url === "" && inner.length > 0 ? inner : [own, ...inner];
    });
  return [...texts, ...links];
}
