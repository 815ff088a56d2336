import { filled, joinWithDots, type RawLink, ratingText } from "../build-element.ts";
import { type Fields, isObject } from "../read-rows.ts";

export type RowFields = {
  /** The first of these that is filled is the title. */
  title: readonly string[];
  /** The first of these that is filled is the URL. */
  url: readonly string[];
  /** The fields of the description, in order. `rating` stands for the rating with its votes. */
  texts: readonly string[];
};
/** The fields that a kind of row has. The others are kept too, with their names. */
type RowKind = RowFields & { known: ReadonlySet<string> };

/** Not texts of the page: ids and further pages of Google, addresses and sizes of pictures, the place in a list, coordinates. */
const omittedField =
  /^(?:cid|fid|position|latitude|longitude|domain|(?:.*[a-z])?(?:Url|Link|Id|Width|Height|Highlighted))$/;
const address = /^(?:https?:|data:|\/)/i;
const attributesField = "attributes";
const usualScale = "5";

export function rowKind(fields: RowFields): RowKind {
  return { ...fields, known: knownFields(...fields.title, ...fields.url, ...fields.texts) };
}

/** These fields, and those of a rating and the attributes, which are always read together. */
export function knownFields(...names: readonly string[]): ReadonlySet<string> {
  return new Set([...names, "rating", "ratingMax", "ratingType", "ratingCount", attributesField]);
}

/** The first of these fields that is filled. A number counts as a text; "" if all are missing or have another form. */
export function textIn(row: Fields, ...names: readonly string[]): string {
  for (const name of names) {
    const text = toText(row[name]);
    if (text !== "") return text;
  }
  return "";
}

/** A row as a link with all its texts; undefined if it has neither title nor URL. A bare text is a title. */
export function toLink(value: unknown, kind: RowKind): RawLink | undefined {
  if (typeof value === "string" && value.trim() !== "") return { title: value };
  if (!isObject(value)) return undefined;
  const title = textIn(value, ...kind.title);
  const url = textIn(value, ...kind.url);
  if (`${title}${url}`.trim() === "") return undefined;
  return { title, url, description: joinWithDots(...descriptionOf(value, kind)) };
}

/** `8.5/10 (1,234)`. The scale is left out if it ends at five. */
export function starsOf(row: Fields): string {
  const rating = textIn(row, "rating");
  const scale = textIn(row, "ratingMax");
  const isUsual = rating === "" || scale === "" || scale === usualScale || rating.includes("/");
  return ratingText(isUsual ? rating : `${rating}/${scale}`, textIn(row, "ratingCount"));
}

/** The attributes as Google displays them, `Brand: Nimbus`, and every unknown field with its name, `old price: $120`. */
export function otherLines(row: Fields, known: ReadonlySet<string>): string[] {
  const attributes = row[attributesField];
  const lines = isObject(attributes) ? Object.entries(attributes).flatMap(([name, value]) => line(name, value)) : [];
  for (const name of Object.keys(row))
    if (!known.has(name) && !omittedField.test(name)) lines.push(...line(words(name), row[name]));
  return lines;
}

function descriptionOf(row: Fields, { title, texts, known }: RowKind): string[] {
  const titleField = title.find((name) => toText(row[name]) !== "");
  const own = texts.filter((name) => name !== titleField);
  return [...own.map((name) => (name === "rating" ? starsOf(row) : textWithin(row[name]))), ...otherLines(row, known)];
}

function line(name: string, value: unknown): string[] {
  const text = textWithin(value);
  return text === "" || address.test(text) ? [] : [`${name}: ${text}`];
}

/** A text, a list of tags, or the hours by day, as one text; "" for anything deeper. */
function textWithin(value: unknown): string {
  if (Array.isArray(value)) return filled(value.map(toText)).join(", ");
  if (!isObject(value)) return toText(value);
  const parts = Object.entries(value).filter(([, part]) => toText(part) !== "");
  return parts.map(([name, part]) => `${name}: ${toText(part)}`).join(", ");
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
}

/** `oldPrice` → `old price`. */
function words(name: string): string {
  return name.replace(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
