import { decodeHTMLStrict } from "entities";
import type { Page } from "../../../worker/providers/provider.ts";
import { plainUrl } from "../../../worker/providers/sanitize.ts";

/** A text, number or link of an answer that its page lacks. */
export interface LostValue {
  /** Where it is, with lists as `[]`: `local_results.places[].hours`. */
  path: string;
  value: string;
  isLink: boolean;
}

/** A text so short would be found by chance within other words, and a number within other numbers. */
const shortTextMax = 3;
const link = /^(?:https?:|data:|mailto:|tel:|\/\/|\/\w*[?/])\S*$/i;
/** The address of a button: `https://www.google.com/#`. */
const withoutDestination = /^https?:\/\/[^/]+\/?#$/;
const isoTime = /^(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d\S*(?: [+-]\d\d:\d\d| UTC)?$/;
/** Dots as well: Google's custom search has them between a date and its text. */
const separators = /[·•|\n]| (?:[—–-]|\.\.\.|…) /;

/** Around a rating, which is written as `4.8 (1,234)`. */
const ratingWords = /^rating:?(?:\s+|$)|\s+(?:reviews|votes)$|[()]|\.0(?!\d)/gi;

/**
 * The texts, numbers and links of an answer that none of the page's texts contains. Compared are bare texts: without
 * markup, upper case, separators, direction marks and the commas of thousands. Of a time, the day is enough.
 */
export function findLostValues(answer: unknown, page: Page, isOmitted: (path: string) => boolean): LostValue[] {
  const kept = [...leavesOf(page)];
  const keptText = ` ${kept.map(({ value }) => bareText(value)).join(" ")} `;
  const keptLinks = new Set(kept.map(({ value }) => value));
  return [...leavesOf(answer)]
    .map(({ path, value }) => ({ path, value: value.trim(), isLink: link.test(value.trim()) }))
    .filter(({ path, value, isLink }) => {
      if (isOmitted(path) || withoutDestination.test(value)) return false;
      if (isLink) return !linksWithin(value).some((target) => keptLinks.has(target));
      return !isContained(value, keptText);
    });
}

interface Leaf {
  path: string;
  value: string;
}

/** Every text and number within a value. */
export function* leavesOf(value: unknown, path = ""): Generator<Leaf> {
  if (typeof value === "string" || typeof value === "number") yield { path, value: String(value) };
  else if (Array.isArray(value)) for (const member of value) yield* leavesOf(member, `${path}[]`);
  else if (isRaw(value)) {
    for (const [name, part] of Object.entries(value)) yield* leavesOf(part, path === "" ? name : `${path}.${name}`);
  }
}

function isContained(value: string, keptText: string): boolean {
  const day = isoTime.exec(value)?.[1];
  const wanted = [day ?? value].flatMap((text) => (isWithin(bareText(text), keptText) ? [] : text.split(separators)));
  return wanted.every((part) => isWithin(bareText(part), keptText));
}

function isWithin(text: string, keptText: string): boolean {
  if (!/[\p{L}\p{N}]/u.test(text)) return true;
  if (text.length > shortTextMax && !/^[\d., ]+$/.test(text)) return keptText.includes(text);
  for (let at = keptText.indexOf(text); at >= 0; at = keptText.indexOf(text, at + 1)) {
    const around = `${keptText.charAt(at - 1)}${keptText.charAt(at + text.length)}`;
    if (!/[\p{L}\p{N}]/u.test(around)) return true;
  }
  return false;
}

function bareText(text: string): string {
  return decodeHTMLStrict(text.replace(/<[^>]*>/g, ""))
    .replace(/[\p{Cf}\p{Co}]/gu, "")
    .replace(/(\d),(?=\d{3}(?!\d))/g, "$1")
    .replace(/[·•—–|]|(?:^|\s)-\s/g, " ")
    .replace(ratingWords, " ")
    .replace(/[\s\p{Z}\p{Cc}]+/gu, " ")
    .normalize("NFC")
    .toLowerCase()
    .trim();
}

/** The link itself, also as results have it, and the targets of a redirect. */
function linksWithin(url: string): string[] {
  const parameters = URL.parse(url, "https://www.google.com/")?.searchParams;
  return [url, plainUrl(url) || url, ...(parameters?.getAll("q") ?? []), ...(parameters?.getAll("url") ?? [])];
}

export function isRaw(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
