import type { ProviderName } from "../../shared/config.ts";

/**
 * The published prices as of November 2026, in millionths of a USD: of the first page of a search, and of each further one that its
 * depth needs.
 */
interface Price {
  firstPageMicroUsd: number;
  furtherPageMicroUsd: number;
}

const perCall = (microUsd: number): Price => ({ firstPageMicroUsd: microUsd, furtherPageMicroUsd: microUsd });

/**
 * The adapters count their calls with these prices where an answer states none, and the operator's commands compare them with
 * the prices of the plans. Undefined where a search has no price.
 */
export const prices = {
  sandbox: perCall(0),
  /** One search at the price of the smallest plan, 25 USD for 1,000. That each page counts as a search is unverified. */
  serpapi: perCall(25_000),
  /** One credit at the price of the smallest package, 50 USD for 50,000. That each page takes one is unverified. */
  serper: perCall(1_000),
  /** One credit at the price of the smallest plan, 40 USD for 10,000. The price, and that each page takes one, are unverified. */
  searchapi: perCall(4_000),
  /** The operator's own machines and IP addresses. */
  searxng: undefined,
  /** Live results, since 19 September 2025: dataforseo.com/pricing/serp/google-organic-serp-api. Without AI Overviews, which cost as much as a first page. */
  dataforseo: { firstPageMicroUsd: 2_000, furtherPageMicroUsd: 1_500 },
} satisfies Record<ProviderName, Price | undefined>;

/** What DataForSEO adds for each click on a question, in millionths of a USD. */
export const questionClickMicroUsd = 150;

/** What a search of so many pages costs, in millionths of a USD, without retries and failover. Undefined if it is unknown. */
export function searchCostMicroUsd(provider: ProviderName, pages: number): number | undefined {
  const price: Price | undefined = prices[provider];
  return price && price.firstPageMicroUsd + (pages - 1) * price.furtherPageMicroUsd;
}
