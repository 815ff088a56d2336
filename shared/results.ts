import { z } from "zod";
import { requestId } from "./ids.ts";
import { querySchema } from "./query/query.ts";

/** The kinds of element on a results page. Whatever is new upstream becomes `other`: kept, never dropped. */
export const resultTypes = [
  "organic",
  "paid",
  "featured_snippet",
  "answer_box",
  "ai_overview",
  "knowledge_graph",
  "people_also_ask",
  "local_pack",
  "top_stories",
  "video",
  "images",
  "shopping",
  "discussions",
  "related_searches",
  "other",
] as const;

export type ResultType = (typeof resultTypes)[number];

/** What each of them is, in one line. */
export const resultTypeMeanings: Readonly<Record<ResultType, string>> = {
  organic: "a result that nobody paid for; every search has these",
  paid: "an advertisement",
  featured_snippet: "an answer cut out of a page, above the results",
  answer_box: "an answer by the engine itself: weather, sums, times",
  ai_overview: "an answer written by a model",
  knowledge_graph: "the panel about a person, a place or a thing",
  people_also_ask: "questions that others asked, as `siteLinks`",
  local_pack: "businesses near the place",
  top_stories: "news of the moment",
  video: "videos",
  images: "pictures",
  shopping: "products with prices",
  discussions: "forums and answers by people",
  related_searches: "what else people search for",
  other: "whatever is new: kept, never dropped",
};

export const siteLink = z
  .strictObject({
    title: z.string().meta({ description: "The text of the link." }),
    url: z.string().meta({ description: 'Where it leads, absolute; `""` where it leads nowhere.' }),
    description: z.string().meta({ description: 'The answer or source line beside it, or `""`.' }),
  })
  .meta({
    description: "A link inside a result: a question, a story, a video, a product, or a page of the same site.",
  });

const lines = (description: string) => z.array(z.string()).meta({ description });

/** One element of the page. All nine keys are always there: a text the engine does not give is "", a list []. */
export const result = z
  .strictObject({
    type: z.enum(resultTypes).meta({
      description: `The kind of element.\n\n${resultTypes.map((type) => `- \`${type}\`: ${resultTypeMeanings[type]}`).join("\n")}`,
    }),
    rank: z.int().min(1).meta({ description: "Its place among all elements, from 1, over all pages." }),
    title: z.string().meta({ description: 'Its headline, or `""`.' }),
    url: z
      .string()
      .meta({ description: 'Where it leads, absolute, http or https; `""` for an element without a link.' }),
    domain: z.string().meta({ description: 'The host of `url`, in lower case and without `www.`, or `""`.' }),
    breadcrumb: z.string().meta({ description: 'The address as the engine shows it, or `""`.' }),
    description: z.string().meta({ description: 'The text under the headline, or `""`.' }),
    richSnippet: z
      .strictObject({
        top: lines("What stands above or beside the description: a rating, a price, a date."),
        bottom: lines("What stands under the description."),
      })
      .meta({ description: "Short texts around the description." }),
    siteLinks: z.array(siteLink).meta({ description: "The links inside the element, or `[]`." }),
  })
  .meta({
    description:
      'One element of the page. All nine keys are always there: a text that the engine does not give is `""`, a list `[]`.',
  });

/** The body of the 200 of a search, keys in the contract's order. */
export const searchResponseBody = z
  .strictObject({
    requestId,
    query: querySchema.meta({ description: "The search as it was executed: complete and canonical." }),
    creditsCharged: z.int().min(0).meta({
      description: "Mils charged for this search: the plan's price, or 0 where its Idempotency-Key had paid before.",
    }),
    creditsRemaining: z.int().min(0).meta({
      description:
        "Mils that could still be spent once this search was admitted: after its price, and less what other searches then held.",
    }),
    totalResultsCount: z.int().min(0).meta({ description: "The engine's own estimate; 0 where it gives none." }),
    results: z.array(result).meta({ description: "In rank order. Empty is an answer too, and is charged." }),
  })
  .meta({ description: "The results, and what they cost." });

export type SearchResponseBody = z.infer<typeof searchResponseBody>;
export type SiteLink = z.infer<typeof siteLink>;
export type Result = z.infer<typeof result>;
