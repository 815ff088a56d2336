import { LRUCache } from "lru-cache";
import { filled, headingCharactersMax, joinWithDots, ratingText, type RawLink, unwrapLines } from "../build-element.ts";
import { type Fields, isObject, toFields } from "../read-rows.ts";

/** The longest lists of real pages have about fifty members. Reading far longer ones would block the worker's other searches. */
export const membersMax = 200;
/** Deeper objects than in any block of a page. */
const depthMax = 6;

/** Pictures, ids and keys, and fields that repeat the text beside them in another form: with everything in them. */
const unshownParts =
  /^(?:serpapi_.*|extracted_.*|.*_token|(?:.*_)?(?:thumbnails?|images?|icon|favicon|logo|latex|coordinates|highlighted_words)|detected_extensions|about_this_result|reference_indexes|formatted|detailed|place_id_search|sitelinks_search_box|\$oid)$/;
/** Ids and addresses. Lists with such a name (`menu_links`) have titles. */
const unshownTexts = /^(?:.*_)?(?:links?|stick|kgmid|entity_type|id|cid|lsig|endpoint|position|index|original)$/;
const urlStart = /^(?:https?:|data:|\/\/)/i;
const keptNameCharactersMax = 100;
/** What is displayed of a field with this name. Cached, because a page has some thousand fields of a hundred names. */
const shownByName = new LRUCache<string, "all" | "lists" | "none">({ max: 1_000, memoMethod: shownOf });

/**
 * An object of an answer. Each field is checked before it is used. The row remembers which fields were read, so that the rest
 * is kept too: no displayed text is lost because a reader does not know its name.
 */
export class Row {
  readonly #fields: Fields;
  readonly #read = new Set<string>();

  constructor(value: unknown) {
    this.#fields = toFields(value);
  }

  /** A field's text or number as text; "" for anything else, which stays unread. */
  text(name: string): string {
    const found = toText(this.#fields[name]);
    if (found !== "") this.#read.add(name);
    return found;
  }

  /** The first of these fields that has a text. The others stay unread. */
  first(...names: readonly string[]): string {
    for (const name of names) {
      const found = this.text(name);
      if (found !== "") return found;
    }
    return "";
  }

  /** The texts of a list. */
  texts(name: string): string[] {
    const found = toTexts(this.#fields[name]);
    if (found.length > 0) this.#read.add(name);
    return found;
  }

  /** The objects of a list. */
  rows(name: string): Row[] {
    const found = toRows(this.#fields[name]);
    if (found.length > 0) this.#read.add(name);
    return found;
  }

  /** A field of any form, which the caller reads in full. */
  take(name: string): unknown {
    this.#read.add(name);
    return this.#fields[name];
  }

  /** Marks fields as read. */
  skip(...names: readonly string[]): void {
    for (const name of names) this.#read.add(name);
  }

  /** The displayed fields that nothing has read yet. */
  rest(): [name: string, value: unknown][] {
    return Object.entries(this.#fields)
      .slice(0, membersMax)
      .filter(([name, value]) => !this.#read.has(name) && isShown(name, value));
  }
}

/** A text without LRM and RLM at any place. */
export const withoutDirectionMarks = (text: string): string => text.replace(/[\u200e\u200f]/g, "").trim();

/** A text in one line, or a number as text; "" for anything else. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value.includes("\n") ? unwrapLines(value.split("\n")) : value.trim();
  return typeof value === "number" && Number.isFinite(value) ? String(value) : "";
}

export const toMembers = (value: unknown): unknown[] => (Array.isArray(value) ? value.slice(0, membersMax) : []);

export const toTexts = (value: unknown): string[] => filled(toMembers(value).map(toText));

export function toRows(value: unknown): Row[] {
  return toMembers(value)
    .filter(isObject)
    .map((member) => new Row(member));
}

/** `["Power", "900 W"]` → `Power: 900 W`. */
export function tableLine(cells: unknown): string {
  const texts = toMembers(cells).map((cell) => toText(isObject(cell) ? cell["snippet"] : cell));
  return texts.length === 2 ? texts.join(": ") : joinWithDots(...texts);
}

/** `patron_saint` → `Patron saint`. */
function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** The texts within a field that has no reader of its own: `["Free delivery"]`, `["Votes: 3"]`, `["Hours: Monday 9–5"]`. */
export function shownTexts(name: string, value: unknown, depth = 0): string[] {
  if (value === true) return [labelOf(name)];
  if (typeof value === "number") return [`${labelOf(name)}: ${toText(value)}`];
  if (typeof value === "string") return filled([toText(value)]);
  if (depth === depthMax) return [];
  if (Array.isArray(value)) return toMembers(value).flatMap((member) => memberTexts(member, depth + 1));
  const inner = fieldTexts(value, depth + 1);
  return inner.length === 0 ? [] : [`${labelOf(name)}: ${inner.join(", ")}`];
}

/** A member of a list as one text. */
function memberTexts(member: unknown, depth: number): string[] {
  if (!isObject(member)) return isShown("", member) ? [shownTexts("", member, depth).join(" · ")] : [];
  const texts = new Row(member).rest().flatMap(([name, value]) => shownTexts(name, value, depth));
  return texts.length === 0 ? [] : [texts.join(" ")];
}

/** `{high: "101", low: "79"}` → `High 101`, `Low 79`. */
function fieldTexts(value: unknown, depth: number): string[] {
  return new Row(value).rest().flatMap(([name, inner]) => {
    const text = isObject(inner) || Array.isArray(inner) ? shownTexts(name, inner, depth).join(", ") : toText(inner);
    if (text === "") return inner === true ? [labelOf(name)] : [];
    return isObject(inner) ? [text] : [`${labelOf(name)} ${text}`];
  });
}

function isShown(name: string, value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === "") return false;
  const shown = name.length > keptNameCharactersMax ? shownOf(name) : shownByName.memo(name);
  if (shown === "none") return false;
  if (typeof value === "object") return true;
  return shown === "all" && !(typeof value === "string" && urlStart.test(value));
}

function shownOf(name: string): "all" | "lists" | "none" {
  if (unshownParts.test(name)) return "none";
  return unshownTexts.test(name) ? "lists" : "all";
}

/** Lists of lists in a block of an unknown kind. */
const listDepthMax = 4;
const titleFields = ["title", "name", "question", "query", "text", "link_text"];
const addressFields = ["link", "website", "product_link", "redirect_link", "video_link"];

/** The details that are displayed first, in this order. All others follow in the order of the answer. */
const generalDetails = ["price", "old_price", "original_price", "source", "channel", "date", "duration", "snippet"];

export const titleOf = (row: Row): string => row.first(...titleFields);

/** The address of the page that a row leads to. */
export const urlOf = (row: Row): string => row.first(...addressFields);

/** `4.5 (1,200)`; `(1,200)` if it has only a number of reviews. */
export function ratingOf(row: Row): string {
  return ratingText(row.text("rating"), row.first("reviews", "review_count", "votes"));
}

/** These details, and then everything else that the page displays of the row, each once. */
export function describe(row: Row, details: readonly string[], title = ""): string {
  const others = row.rest().flatMap(([name, value]) => shownTexts(name, value));
  const texts = new Set([...details, ...others]);
  texts.delete(title);
  return joinWithDots(...texts);
}

/** What a panel, or an element of an unknown kind, displays: facts, and members that have an address. */
type Content = { lines: string[]; links: RawLink[] };

/** The content of the fields that nothing has read yet. */
export function restOf(row: Row, depth = 0): Content {
  return merge(row.rest().map(([name, value]) => contentOf(name, value, depth)));
}

/** The content of a list of rows, or of all lists in an object: some elements come in either form. */
function contentOf(name: string, value: unknown, depth = 0): Content {
  if (depth > listDepthMax) return merge([]);
  if (Array.isArray(value)) return listContent(name, value, depth);
  if (isObject(value)) return objectContent(name, value, depth);
  return { lines: [value === true ? labelOf(name) : `${labelOf(name)}: ${toText(value)}`], links: [] };
}

function listContent(name: string, list: readonly unknown[], depth: number): Content {
  const members = toMembers(list);
  const texts = filled(members.map(toText));
  const lines = texts.length === 0 ? [] : [`${labelOf(name)}: ${texts.join(", ")}`];
  const tables = members.filter((member) => Array.isArray(member)).map(tableLine);
  return merge([
    { lines: [...lines, ...tables], links: [] },
    ...members.filter(isObject).map((member) => memberContent(new Row(unprefixed(name, member)), depth + 1)),
  ]);
}

/** The fields of some links have the name of their list before them: `patron_saint_text` in `patron_saint_links`. */
function unprefixed(list: string, member: Fields): Fields {
  const prefix = list.replace(/links$/, "");
  if (prefix === list || prefix === "") return member;
  return Object.fromEntries(Object.entries(member).map(([name, value]) => [name.replace(prefix, ""), value]));
}

/** An object with an address is a link, one with lists is read list by list, and `{opens: "9", closes: "5"}` is one fact. */
function objectContent(name: string, value: unknown, depth: number): Content {
  if (urlOf(new Row(value)) !== "") return memberContent(new Row(value), depth);
  const row = new Row(value);
  return row.rest().some(([, part]) => typeof part === "object")
    ? restOf(row, depth + 1)
    : { lines: shownTexts(name, value), links: [] };
}

/** A row with an address is a link. One without is a line, or the heading of the rows within it that have one. */
function memberContent(row: Row, depth: number): Content {
  const title = titleOf(row);
  const url = urlOf(row);
  const parts = url === "" && depth <= listDepthMax ? row.rest().filter(([, value]) => hasAddress(value)) : [];
  row.skip(...parts.map(([name]) => name));
  const rating = ratingOf(row);
  const description = describe(row, [...generalDetails.map((name) => row.text(name)), rating], title);
  if (url !== "") return { lines: [], links: [{ title, url, description }] };
  const inner = merge(parts.map(([name, value]) => contentOf(name, value, depth + 1)));
  const heading = joinWithDots(title, description);
  const named = inner.links.filter((link) => link.title !== "");
  if (named.length > 0) {
    const short = heading.slice(0, headingCharactersMax);
    const links = named.map((link, at) => ({
      ...link,
      description: joinWithDots(at === 0 ? heading : short, link.description ?? ""),
    }));
    return { lines: inner.lines, links };
  }
  if (description === "" && title !== "") return { lines: inner.lines, links: [{ title }] };
  return { lines: filled([heading, ...inner.lines]), links: [] };
}

function merge(contents: readonly Content[]): Content {
  return { lines: contents.flatMap(({ lines }) => lines), links: contents.flatMap(({ links }) => links) };
}

const hasAddress = (value: unknown): boolean => toRows(value).some((row) => urlOf(row) !== "");
