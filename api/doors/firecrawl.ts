import { z } from "zod";
import { depthMax } from "../../shared/query/depth.ts";
import { readUpTo } from "../../shared/schema.ts";
import {
  countUpTo,
  type Door,
  domainList,
  localeOf,
  locationIn,
  notGiven,
  notOnSites,
  onSites,
  optionalText,
  organicOf,
  publishedWithinTbs,
  requiredKeyword,
  withOperators,
} from "./door.ts";

/** What a client of version 1 always sends: it wants no format of the pages. */
const wantsNoFormat = (options: unknown) => z.object({ formats: z.tuple([]).optional() }).safeParse(options).success;

/** The web, news and images. */
const sourcesMax = 3;
const webOnly = "This door searches the web only: expected web.";

/** The search of Firecrawl, versions 1 and 2. It scrapes nothing. */
export const firecrawl: Door = {
  paths: { "/v1/search": ["POST"], "/v2/search": ["POST"] },
  sent: "body",
  fields: z
    .object({
      query: requiredKeyword,
      limit: countUpTo(depthMax, 10),
      lang: optionalText,
      country: optionalText,
      location: optionalText,
      includeDomains: domainList,
      excludeDomains: domainList,
      tbs: publishedWithinTbs,
      categories: notGiven("categories", (categories) => Array.isArray(categories) && categories.length === 0),
      sources: readUpTo(
        sourcesMax,
        z
          .array(z.union([z.literal("web"), z.object({ type: z.literal("web") })], webOnly), webOnly)
          .refine(({ length }) => length <= sourcesMax, webOnly)
          .nullish(),
      ),
      scrapeOptions: notGiven("contents of pages", wantsNoFormat),
    })
    .transform(({ query, limit: part, lang, country, location, includeDomains, excludeDomains, tbs }, context) => ({
      search: {
        keyword: withOperators(context, query, {
          includeDomains: onSites(includeDomains),
          excludeDomains: notOnSites(excludeDomains),
          tbs,
        }),
        depth: part.depth,
        language: localeOf(lang).language,
        location: locationIn(location, country ?? localeOf(lang).location),
      },
      locationName: location === undefined ? "country" : "location",
      write: (answer, { path }) => {
        const results = part
          .of(organicOf(answer))
          .map(({ title, url, description }, place) => ({ url, title, description, position: place + 1 }));
        return { success: true, data: path === "/v1/search" ? results : { web: results }, id: answer.requestId };
      },
    })),
  names: { keyword: "query", depth: "limit", language: "lang" },
  writeError: ({ code, message, details }, requestId) => ({ success: false, error: message, code, details, requestId }),
};
