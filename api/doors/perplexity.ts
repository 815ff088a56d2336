import { z } from "zod";
import {
  americanDate,
  countUpTo,
  type Door,
  domainList,
  notOnSites,
  onSites,
  optionalText,
  organicOf,
  publishedWithin,
  requiredKeyword,
  spanOf,
  withOperators,
} from "./door.ts";

/** The search of Perplexity: POST `/search`. Its clients require `url`, `title` and `snippet` of every result. */
export const perplexity: Door = {
  paths: { "/search": ["POST"] },
  sent: "body",
  fields: z
    .object({
      query: z.union([requiredKeyword, z.tuple([requiredKeyword])], "Expected one query: each is a search of its own."),
      max_results: countUpTo(20, 10),
      country: optionalText,
      // A domain with a minus before it is unwanted.
      search_domain_filter: domainList,
      search_recency_filter: spanOf("hour", "day", "week", "month", "year"),
      search_after_date_filter: americanDate,
      search_before_date_filter: americanDate,
    })
    .transform(({ query, max_results: part, country, search_domain_filter: domains, ...filters }, context) => ({
      search: {
        keyword: withOperators(context, typeof query === "string" ? query : query[0], {
          search_domain_filter: [
            ...onSites(domains.filter((domain) => !domain.startsWith("-"))),
            ...notOnSites(domains.filter((domain) => domain.startsWith("-")).map((domain) => domain.slice(1))),
          ],
          search_recency_filter: publishedWithin(
            [filters.search_recency_filter, filters.search_after_date_filter],
            filters.search_before_date_filter,
          ),
        }),
        depth: part.depth,
        location: country,
      },
      write: (answer) => ({
        id: answer.requestId,
        results: part
          .of(organicOf(answer))
          .map(({ title, url, description }) => ({ title, url, snippet: description, date: null, last_updated: null })),
      }),
    })),
  names: { keyword: "query", depth: "max_results", location: "country" },
  writeError: ({ code, message, details }, requestId) => ({ error: { message, type: code, code, details, requestId } }),
};
