import { z } from "zod";
import { countUpTo, type Door, domainList, optionalText, organicOf, requiredKeyword, withinSites } from "./door.ts";

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
    })
    .transform(({ query, max_results: part, country, search_domain_filter: domains }, context) => ({
      search: {
        keyword: withinSites(
          context,
          typeof query === "string" ? query : query[0],
          ["search_domain_filter", domains.filter((domain) => !domain.startsWith("-"))],
          ["search_domain_filter", domains.filter((domain) => domain.startsWith("-")).map((domain) => domain.slice(1))],
        ),
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
