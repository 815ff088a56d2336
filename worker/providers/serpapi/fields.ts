import { LRUCache } from "lru-cache";
import { joinLines } from "../build-element.ts";
import { type Fields, isObject } from "../read-rows.ts";

/** The longest lists of real pages have about fifty members. Reading far longer ones would block the worker's other searches. */
export const membersMax = 200;
/** Deeper objects than in any block of a page. */
const depthMax = 6;

/** Pictures, ids and keys, and fields that repeat the text beside them in another form: with everything in them. */
const unshownParts =
  /^(?:serpapi_.*|extracted_.*|.*_token|(?:.*_)?(?:thumbnails?|images?|icon|favicon|logo|latex|coordinates|highlighted_words)|detected_extensions|about_this_result|reference_indexes|formatted|detailed|place_id_search|sitelinks_search_box|\$oid)$/;
/** Ids and addresses. Lists with such a name (`menu_links`) have titles. */
const unshownTexts = /^(?:.*_)?(?:links?|stick|kgmid|entity_type|id|cid|lsig|endpoint|position|index|original)$/;
const url = /^(?:https?:|data:|\/\/)/i;
/** What is displayed of a field with this name. Cached, because a page has some thousand fields of a hundred names. */
const shownByName = new LRUCache<string, "all" | "lists" | "none">({ max: 1_000, memoMethod: shownOf });

/**
 * An object of an answer whose fields are unknown: each is checked before it is used. It remembers which fields were read, so that
 * the rest can be kept too: no displayed text is lost because a reader does not know its name.
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

  get isEmpty(): boolean {
    return Object.keys(this.#fields).length === 0;
  }
}

/** The object itself; one without fields for any other value. */
function toFields(value: unknown): Fields {
  return isObject(value) ? value : {};
}

/** A text in one line, or a number as text; "" for anything else. */
export function toText(value: unknown): string {
  if (typeof value === "string") return value.includes("\n") ? joinLines(value.split("\n")) : value.trim();
  return typeof value === "number" && Number.isFinite(value) ? String(value) : "";
}

export function toMembers(value: unknown): unknown[] {
  return Array.isArray(value) ? value.slice(0, membersMax) : [];
}

export function toTexts(value: unknown): string[] {
  return toMembers(value)
    .map(toText)
    .filter((text) => text !== "");
}

export function toRows(value: unknown): Row[] {
  return toMembers(value)
    .filter(isObject)
    .map((member) => new Row(member));
}

/** `["Power", "900 W"]` → `Power: 900 W`. */
export function tableLine(cells: unknown): string {
  const texts = toMembers(cells).map((cell) => toText(isObject(cell) ? cell["snippet"] : cell));
  return texts.length === 2 ? texts.join(": ") : texts.filter((text) => text !== "").join(" · ");
}

/** `patron_saint` → `Patron saint`. */
export function labelOf(name: string): string {
  const words = name.replaceAll("_", " ").trim();
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}`;
}

/** The texts within a field that has no reader of its own: `["Free delivery"]`, `["Votes: 3"]`, `["Hours: Monday 9–5"]`. */
export function shownTexts(name: string, value: unknown, depth = 0): string[] {
  if (value === true) return [labelOf(name)];
  if (typeof value === "number") return [`${labelOf(name)}: ${toText(value)}`];
  if (typeof value === "string") return [toText(value)].filter((text) => text !== "");
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
  const shown = shownByName.memo(name);
  if (shown === "none") return false;
  if (typeof value === "object") return true;
  return shown === "all" && !(typeof value === "string" && url.test(value));
}

function shownOf(name: string): "all" | "lists" | "none" {
  if (unshownParts.test(name)) return "none";
  return unshownTexts.test(name) ? "lists" : "all";
}
