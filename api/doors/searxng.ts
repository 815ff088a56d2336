import { z } from "zod";
import { languageCodeOf, listLanguages } from "../../shared/query/languages.ts";
import type { Result } from "../../shared/results.ts";
import type { SearchResponseBody } from "../../shared/search-answer.ts";
import {
  answersIn,
  type Door,
  factsOf,
  linksIn,
  localeOf,
  optionalText,
  organicOf,
  pageOf,
  panelsOf,
  type Part,
  publishedWithin,
  requiredKeyword,
  spanOf,
  wholeNumberUpTo,
  withOperators,
} from "./door.ts";

const pageMax = 10;

/** What clients offer their users to choose from. SearXNG also names its source here, which this is not. */
const config = () => ({
  categories: ["general"],
  engines: [
    {
      name: "google",
      categories: ["general", "web"],
      enabled: true,
      paging: true,
      language_support: true,
      time_range_support: true,
    },
  ],
  locales: (locales ??= Object.fromEntries(
    listLanguages().map(({ name, ownName }) => [languageCodeOf(name), ownName]),
  )),
});

/** Made once: it takes two milliseconds. */
let locales: Record<string, string> | undefined;

/** SearXNG: `/search?q=…&format=json`. Some clients ask at the root, some POST a form, and some POST without a body. */
export const searxng: Door = {
  paths: { "/search": ["GET", "POST"], "/": ["GET", "POST"], "/config": ["GET"] },
  about: { "/config": config },
  sent: "query",
  fields: z
    .object({
      q: requiredKeyword,
      format: z.literal("json", "Expected json: there is no page and no feed."),
      language: optionalText,
      // Programs in Python write `None` for none.
      time_range: z.preprocess((sent) => (sent === "None" ? "" : sent), spanOf("day", "week", "month", "year")),
      pageno: wholeNumberUpTo(pageMax, 1),
    })
    .transform(({ q, language, time_range, pageno }, context) => {
      const part = pageOf(pageno);
      const keyword = withOperators(context, q, { time_range: publishedWithin([time_range], undefined) });
      return {
        search: { keyword, depth: part.depth, ...localeOf(language) },
        write: (answer) => ({ query: q, ...page(answer, part) }),
      };
    }),
  names: { keyword: "q", depth: "pageno", location: "language" },
  writeError: ({ code, message, details }, requestId) => ({ error: message, code, details, requestId }),
};

function page(answer: SearchResponseBody, part: Part) {
  const { query, results, totalResultsCount } = answer;
  return {
    number_of_results: totalResultsCount,
    results: part.of(organicOf(answer)).map(({ title, url, description }, place) => ({
      url,
      title,
      content: description,
      description,
      engine: query.engine,
      engines: [query.engine],
      category: "general",
      positions: [place + 1],
      // From 1 downwards: clients sort by it.
      score: Math.round(1e6 / (place + 1)) / 1e6,
      publishedDate: null,
    })),
    answers: answersIn(answer),
    corrections: query.searchedKeyword === undefined ? [] : [query.searchedKeyword],
    infoboxes: panelsOf(results).map((panel) => infobox(panel, query.engine)),
    suggestions: linksIn(results, "related_searches").map(({ title }) => title),
    unresponsive_engines: [],
  };
}

function infobox(panel: Result, engine: string) {
  const { title, url, description, siteLinks } = panel;
  const urls = siteLinks.filter((link) => link.url !== "").map((link) => ({ title: link.title, url: link.url }));
  return { infobox: title, id: url, content: description, urls, attributes: factsOf(panel), engine };
}
