import { z } from "zod";
import { requestId } from "./ids.ts";
import { isSameOrSubdomain } from "./query/domains.ts";
import { querySchema } from "./query/query.ts";
import { type Result, result } from "./results.ts";
import { natural, optional } from "./schema.ts";

/** The most bytes of a body: API, Redis and Postgres keep each for a while. */
export const answerBytesMax = 2 * 1024 * 1024;

/** The bodies of a successful search. The request's `format` chooses one of them. Keys are in the contract's order. */

const searchedKeyword = optional(
  z.string(),
  "What the engine searched instead of `keyword`, because it corrected the spelling. Missing if it searched `keyword`, " +
    "or if the provider does not tell.",
);

/** The query of a full answer: what the caller ordered, and what the engine searched where that differs. */
export const answeredQuery = querySchema.omit({ format: true }).extend({ searchedKeyword });

/** The query of a compact answer, which has no types, because all its results are organic. */
export const compactQuery = querySchema
  .omit({ types: true })
  .extend({ format: z.literal("compact").describe("The format of the answer."), searchedKeyword });

const aboutQuery = "The search as it was executed, complete and canonical.";

const creditsCharged = natural.describe(
  "Mils charged for this search: the plan's price, or its cached price if a kept answer answered. In a replay it is what the first request paid.",
);

const creditsRemaining = natural.describe(
  "Mils available right after this search was admitted: the balance without its price and without the holds of other searches.",
);

/** What `include` asks for. */
const further = {
  fetchedAt: optional(
    z.iso.datetime(),
    "When the provider's answer to this query arrived: ISO 8601 in UTC. It is before the request if the answer is a cached " +
      "one. Missing unless `include` asks for it.",
  ),
  answeredBy: optional(
    z.string(),
    "The provider that answered this query. Missing unless `include` asks for it, or if the operator of the service does " +
      "not tell.",
  ).meta({ examples: ["serper"] }),
};

const truncated = optional(
  z.literal(true),
  "Present if results at the end of the page were left out, because the answer would have more than 2 MiB. The results that " +
    "are there keep their ranks.",
);

export const searchResponseBody = z
  .strictObject({
    requestId,
    query: answeredQuery.describe(aboutQuery),
    creditsCharged,
    creditsRemaining,
    ...further,
    totalResultsCount: natural.describe("The engine's own estimate, or 0 if it gives none."),
    truncated,
    results: z.array(result).describe("In rank order. An empty list is a successful answer and is charged."),
  })
  .describe("The results and their cost.");

const { title, url, description } = result.shape;

export const compactResult = z
  .strictObject({ title, url, description })
  .describe("An organic result. All three keys are always present.");

export const compactResponseBody = z
  .strictObject({
    requestId,
    query: compactQuery.describe(aboutQuery),
    creditsCharged,
    creditsRemaining,
    ...further,
    truncated,
    results: z
      .array(compactResult)
      .describe("The organic results in rank order. An empty list is a successful answer and is charged."),
  })
  .describe("The organic results in short, and their cost: the answer in the format `compact`.");

/** The results that a caller ordered. They keep their ranks on the whole page. */
export function orderedResults(
  results: readonly Result[],
  { targetDomain, types, format }: { targetDomain?: string; types?: readonly string[]; format?: string },
): Result[] {
  const wanted = format === "compact" ? ["organic"] : types;
  return results.filter(
    ({ type, domain }) =>
      (wanted === undefined || wanted.includes(type)) &&
      (targetDomain === undefined || isSameOrSubdomain(domain, targetDomain)),
  );
}

/** A result of a compact answer. */
export const shortened = (full: Result) => ({
  title: full.title,
  url: full.url,
  description: full.description,
});

export type SearchResponseBody = z.infer<typeof searchResponseBody>;
export type CompactResponseBody = z.infer<typeof compactResponseBody>;

/**
 * How many results, from the first one on, fit into so many bytes of JSON. The last ones are left out, so that those that stay
 * keep their ranks.
 */
export function countFitting(results: readonly unknown[], bytesMax: number): number {
  let bytes = 0;
  const beyond = results.findIndex((element) => {
    bytes += Buffer.byteLength(JSON.stringify(element)) + 1;
    return bytes > bytesMax;
  });
  return beyond < 0 ? results.length : beyond;
}
