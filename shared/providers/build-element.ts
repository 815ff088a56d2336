import type { ResultType, SiteLink } from "../results.ts";
import type { Element } from "./provider.ts";
import { domainOf, plainText, plainUrl } from "./sanitize.ts";

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

/** Builds an element with all its keys: plain texts, checked URLs, no duplicate links. */
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
    siteLinks: uniqueLinks(raw.siteLinks ?? []),
  };
}

/** `4.8 (1,234)`, as shown above a snippet; "" without a rating. */
export function ratingText(rating: string | undefined, ratingCount: string | undefined): string {
  if (rating === undefined || rating === "") return "";
  if (ratingCount === undefined || ratingCount === "") return rating;
  const count = Number(ratingCount);
  return `${rating} (${Number.isSafeInteger(count) ? thousands.format(count) : ratingCount})`;
}

/** `Source · 2 days ago`. Empty texts are left out. */
export function joinWithDots(...texts: readonly string[]): string {
  return texts.filter((text) => text !== "").join(" · ");
}

function plainTexts(texts: readonly string[]): string[] {
  return texts.map(plainText).filter((text) => text !== "");
}

/** Links are identified by URL, or by title if they have none. A link with neither is dropped. */
function uniqueLinks(links: readonly RawLink[]): SiteLink[] {
  const unique = new Map<string, SiteLink>();
  for (const link of links) {
    const url = plainUrl(link.url ?? "");
    const title = plainText(link.title ?? "");
    const key = url === "" ? `:${title}` : url;
    if (key === ":" || unique.has(key)) continue;
    unique.set(key, { title, url, description: plainText(link.description ?? "") });
  }
  return [...unique.values()];
}
