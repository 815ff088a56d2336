import { z } from "zod";
import { depthMax } from "../../shared/query/depth.ts";
import type { SearchResponseBody } from "../../shared/search-answer.ts";
import {
  answerText,
  type Door,
  factsOf,
  linksIn,
  localeOf,
  locationIn,
  notGiven,
  ofType,
  optionalText,
  pageOf,
  panelsOf,
  type Part,
  publishedWithinTbs,
  requiredKeyword,
  wholeNumberUpTo,
  withOperators,
} from "./door.ts";

/** Serper: POST `/search`. */
export const serper: Door = {
  paths: { "/search": ["POST"] },
  sent: "body",
  fields: z
    .object({
      q: requiredKeyword,
      gl: optionalText,
      hl: optionalText,
      location: optionalText,
      num: wholeNumberUpTo(depthMax, 10),
      page: wholeNumberUpTo(depthMax, 1),
      tbs: publishedWithinTbs,
      type: notGiven("news, images or other types", (type) => !type || type === "search"),
    })
    .refine(({ num, page }) => num * page <= depthMax, {
      path: ["page"],
      error: `Expected a page that ends at result ${depthMax} at the latest.`,
    })
    .transform(({ q, gl, hl, location, num, page, tbs }, context) => {
      const part = pageOf(page, num);
      // At Serper `hl` is the language alone: without `gl`, pt-br searches from the United States.
      const { language } = localeOf(hl);
      return {
        search: {
          keyword: withOperators(context, q, { tbs }),
          depth: part.depth,
          language,
          location: locationIn(location, gl),
        },
        locationName: location === undefined ? "gl" : "location",
        write: (answer) => ({
          searchParameters: { q, gl, hl, location, num, page, type: "search", engine: answer.query.engine },
          ...write(answer, part),
        }),
      };
    }),
  names: { keyword: "q", depth: "num", language: "hl" },
  statuses: { unauthenticated: 403, out_of_credits: 400 },
  writeError: ({ code, message, details }, requestId, statusCode) => ({
    message,
    statusCode,
    code,
    details,
    requestId,
  }),
};

function write({ results }: SearchResponseBody, part: Part) {
  const [answerBox] = ofType(results, "answer_box", "featured_snippet");
  const [panel] = panelsOf(results);
  // Adapters put the website first, under the panel's title. An entity without one begins with its sources.
  const [first] = panel?.siteLinks ?? [];
  const website = first?.title === panel?.title ? first?.url : undefined;
  return {
    ...(answerBox && {
      answerBox: { title: answerBox.title, snippet: answerText(answerBox), link: answerBox.url || undefined },
    }),
    ...(panel && {
      knowledgeGraph: {
        title: panel.title,
        // Above a panel is its type, or its rating.
        type: panel.richSnippet.top.find((line) => /\p{L}{2}/u.test(line)),
        description: panel.description,
        website,
        attributes: Object.fromEntries(factsOf(panel).map(({ label, value }) => [label, value])),
      },
    }),
    organic: part.of(ofType(results, "organic")).map(({ title, url, description, siteLinks }, place) => ({
      title,
      link: url,
      snippet: description,
      ...(siteLinks.length > 0 && { sitelinks: siteLinks.map((link) => ({ title: link.title, link: link.url })) }),
      position: place + 1,
    })),
    peopleAlsoAsk: linksIn(results, "people_also_ask").map(({ title, description, url }) => ({
      question: title,
      snippet: description,
      link: url,
    })),
    relatedSearches: linksIn(results, "related_searches").map(({ title }) => ({ query: title })),
  };
}
