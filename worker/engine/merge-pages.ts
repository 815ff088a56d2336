import type { Element, Page } from "../providers/provider.ts";
import { plainText } from "../providers/sanitize.ts";
import { keywordCharactersMax } from "../../shared/query/query.ts";
import { truncate } from "../../shared/errors/truncate.ts";
import type { Result } from "../../shared/results.ts";

// No results page has so many elements: a provider that tells more counts something else.
const toldRankMax = 10_000;

/** The ranked results of all pages of one provider. */
export function mergePages(pages: readonly Page[], depth: number): Result[] {
  const elements = elementsOf(pages, depth);
  const ranks = toldRanks(elements);
  return elements.map((element, index) => {
    // Named one by one: with a rest and a spread, merging takes ten times as long.
    const { type, title, url, domain, breadcrumb, description, richSnippet, siteLinks } = element;
    const rank = ranks?.[index] ?? index + 1;
    return { type, rank, title, url, domain, breadcrumb, description, richSnippet, siteLinks };
  });
}

/** What the engine searched instead of the keyword. Undefined if it searched the keyword itself. */
export function searchedKeywordOf(pages: readonly Page[], keyword: string): string | undefined {
  const searched = pages.find((page) => page.searchedKeyword !== undefined)?.searchedKeyword?.trim();
  // Adapters sanitize the provider's texts, which is no correction of the spelling.
  if (!searched || searched === keyword || searched === plainText(keyword)) return undefined;
  return truncate(searched, keywordCharactersMax);
}

/** All elements in page order. Of organic ones, each URL only once, and no more than the depth. */
function elementsOf(pages: readonly Page[], depth: number): Element[] {
  const urls = new Set<string>();
  let organic = 0;
  return pages
    .flatMap((page) => page.elements)
    .filter((element) => {
      if (element.type !== "organic") return true;
      if (organic === depth || urls.has(element.url)) return false;
      if (element.url !== "") urls.add(element.url);
      organic += 1;
      return true;
    });
}

/**
 * The ranks that the provider tells. An element without one, or with that of the element before it, comes right after that
 * element; those behind it move on until there is a gap. Undefined if the told ranks fall, as where a provider counts each
 * page from 1.
 */
function toldRanks(elements: readonly Element[]): number[] | undefined {
  const ranks: number[] = [];
  let previous = 0;
  let previousTold = 1;
  for (const { providerRank = previousTold } of elements) {
    if (!Number.isInteger(providerRank) || providerRank < previousTold || providerRank > toldRankMax) return undefined;
    previous = Math.max(providerRank, previous + 1);
    ranks.push(previous);
    previousTold = providerRank;
  }
  return ranks;
}
