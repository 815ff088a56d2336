import { groupTypes, type ResultType, type SiteLink } from "../../shared/results.ts";
import type { Element } from "./provider.ts";
import { readDomain } from "../../shared/query/domains.ts";
import { domainOf, isEncryptedRedirect, plainText, plainUrl } from "./sanitize.ts";

const thousands = new Intl.NumberFormat("en-US");

/** An element with the provider's own texts, before sanitizing. Missing fields are left out. */
export type RawElement = {
  title?: string;
  url?: string;
  breadcrumb?: string;
  description?: string;
  top?: readonly string[];
  bottom?: readonly string[];
  siteLinks?: readonly RawLink[];
};
export type RawLink = { title?: string; url?: string; description?: string };

/** Five times as many as an element with long texts and a hundred links has. */
const elementCharactersMax = 100_000;
/** A heading is repeated for each member of its group, so a long one would multiply. */
export const headingCharactersMax = 200;
/** What JSON adds to an entry of a list: names of fields and punctuation. */
const entryCharacters = 50;

/** Builds an element with all its keys: plain texts, checked URLs, no duplicate links, bounded size. */
export function buildElement(type: ResultType, raw: RawElement): Element {
  const url = plainUrl(raw.url ?? "");
  const element = {
    type,
    title: plainText(raw.title ?? ""),
    url,
    domain: isEncryptedRedirect(raw.url ?? "") ? domainShown(raw.breadcrumb) : domainOf(url),
    breadcrumb: plainText(raw.breadcrumb ?? ""),
    description: plainText(raw.description ?? ""),
    richSnippet: { top: plainTexts(raw.top ?? []), bottom: plainTexts(raw.bottom ?? []) },
    siteLinks: uniqueLinks(raw.siteLinks ?? [], groupTypes.has(type)),
  };
  shortenLists(element);
  return element;
}

/** `https://www.example.com › pumps` → `example.com`; "" for `Ann Pump · LinkedIn`. */
const domainShown = (breadcrumb = ""): string => readDomain(breadcrumb.split(" › ", 1)[0] ?? "") ?? "";

/** Removes entries from the ends of an oversized element's lists until it fits. */
function shortenLists(element: Element): void {
  const { siteLinks, richSnippet } = element;
  let excess = charactersOf(element) - elementCharactersMax;
  while (excess > 0) {
    const link = siteLinks.pop();
    const line = link ? undefined : (richSnippet.bottom.pop() ?? richSnippet.top.pop());
    if (!link && line === undefined) return;
    excess -= link ? linkCharacters(link) : lineCharacters(line ?? "");
  }
}

/** How many characters a result has as JSON, about. */
export function charactersOf({ title, url, domain, breadcrumb, description, richSnippet, siteLinks }: Element): number {
  let characters = title.length + url.length + domain.length + breadcrumb.length + description.length;
  characters += 4 * entryCharacters;
  for (const line of richSnippet.top) characters += lineCharacters(line);
  for (const line of richSnippet.bottom) characters += lineCharacters(line);
  for (const link of siteLinks) characters += linkCharacters(link);
  return characters;
}

const lineCharacters = (line: string) => line.length + entryCharacters;
const linkCharacters = ({ title, url, description }: SiteLink) =>
  title.length + url.length + description.length + entryCharacters;

/** `4.8 (1,234)`, as shown above a snippet; `(1,234)` for a count without a rating; "" without both. */
export function ratingText(rating = "", ratingCount = ""): string {
  if (ratingCount === "") return rating;
  const count = Number(ratingCount);
  return `${rating} (${Number.isSafeInteger(count) ? thousands.format(count) : ratingCount})`.trim();
}

/** The texts without empty ones. */
export const filled = (texts: readonly string[]) => texts.filter((text) => text !== "");

/** `Source · 2 days ago`. Empty texts are left out. */
export const joinWithDots = (...texts: readonly string[]): string => filled(texts).join(" · ");

/** Joins lines or paragraphs: with a space after punctuation, otherwise with a dot, so that sentences stay apart. */
export function joinLines(lines: readonly string[]): string {
  let joined = "";
  let previous = ""; // Reading the end of `joined` would copy all of it each time.
  for (const text of filled(lines.map((line) => line.trim()))) {
    const separator = previous === "" ? "" : isPunctuated(previous) ? " " : " · ";
    joined += separator + text;
    previous = text;
  }
  return joined;
}

/** The lines of one text in one line. A line that begins in lower case continues the sentence of the line before it. */
export function unwrapLines(lines: readonly string[]): string {
  const sentences: string[] = [];
  for (const line of lines.map((text) => text.trim())) {
    sentences.push(/^\p{Ll}/u.test(line) ? `${sentences.pop() ?? ""} ${line}` : line);
  }
  return joinLines(sentences);
}

const day = String.raw`\d{1,2}\.?`;
const month = String.raw`\p{L}{3,12}\.?`;
const year = String.raw`(?:19|20)\d\d`;
/** `3 days ago — `, `Apr 1, 2013 — `, `1 abr 2013 ... `: Google puts the date before the snippet, its custom search with dots. */
const leadingDate = new RegExp(
  `^(\\d{1,2} (?:minute|hour|day|week|month|year)s? ago|${month} ${day}, ${year}|${day} (?:de )?${month},?(?: de)? ${year}|${year}年\\d{1,2}月\\d{1,2}日|${year}/\\d\\d?/\\d\\d?|${year}\\. ?\\d\\d?\\. ?\\d\\d?\\.|\\d\\d?[./]\\d\\d?[./]${year}) +(?:[—–·…]|\\.\\.\\.) +`,
  "u",
);

/** The date that stands before a snippet, and the snippet without it; "" if none does. */
export function splitLeadingDate(snippet: string): { date: string; rest: string } {
  const [before = "", date = ""] = leadingDate.exec(snippet) ?? [];
  return { date, rest: snippet.slice(before.length) };
}

/** Whether a text ends with a punctuation mark or a symbol. */
export const isPunctuated = (text: string): boolean => /[\p{P}\p{S}]$/u.test(text.slice(-2));

const plainTexts = (texts: readonly string[]): string[] => filled(texts.map(plainText));

/**
 * Links are identified by URL, or by title if they have none. In a group, URL and title identify them: two branches of a shop
 * have the same site, and two questions the same source. A link with neither is dropped.
 */
function uniqueLinks(links: readonly RawLink[], isGroup: boolean): SiteLink[] {
  const unique = new Map<string, SiteLink>();
  for (const link of links) {
    const url = plainUrl(link.url ?? "");
    const title = plainText(link.title ?? "");
    const key = url !== "" && !isGroup ? url : `${url} ${title}`;
    if (key === " " || unique.has(key)) continue;
    unique.set(key, { title, url, description: plainText(link.description ?? "") });
  }
  return [...unique.values()];
}
