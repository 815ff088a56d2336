import type { ResultType, SiteLink } from "../results.ts";
import type { Element } from "./provider.ts";
import { domainOf, plainText, plainUrl } from "./sanitize.ts";

const thousands = new Intl.NumberFormat("en-US");

/** What a provider tells of an element, in its own spelling. What it does not tell is left out. */
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

/** Builds an element with all its keys: texts plain, addresses checked, each link once. */
export function buildElement(type: ResultType, raw: RawElement): Element {
  const url = plainUrl(raw.url ?? "");
  return {
    type,
    title: plainText(raw.title ?? ""),
    url,
    domain: domainOf(url),
    breadcrumb: plainText(raw.breadcrumb ?? ""),
    description: plainText(raw.description ?? ""),
    richSnippet: { top: plainTexts(raw.top ?? []), bottom: plainTexts(raw.bottom ?? []) },
    siteLinks: linksOnce(raw.siteLinks ?? []),
  };
}

/** `4.8 (1,234)`, as it stands above a snippet; "" without a rating. */
export function ratingText(rating: string | undefined, ratingCount: string | undefined): string {
  if (rating === undefined || rating === "") return "";
  if (ratingCount === undefined || ratingCount === "") return rating;
  const count = Number(ratingCount);
  return `${rating} (${Number.isSafeInteger(count) ? thousands.format(count) : ratingCount})`;
}

function plainTexts(texts: readonly string[]): string[] {
  return texts.map(plainText).filter((text) => text !== "");
}

/** Links without an address are told apart by their title; one that has neither says nothing. */
function linksOnce(links: readonly RawLink[]): SiteLink[] {
  const known = new Map<string, SiteLink>();
  for (const link of links) {
    const url = plainUrl(link.url ?? "");
    const title = plainText(link.title ?? "");
    const key = url === "" ? `:${title}` : url;
    if (key === ":" || known.has(key)) continue;
    known.set(key, { title, url, description: plainText(link.description ?? "") });
  }
  return [...known.values()];
}
