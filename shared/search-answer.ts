import { z } from "zod";
import { requestId } from "./ids.ts";
import { querySchema } from "./query/query.ts";
import { result } from "./results.ts";

/** The most bytes of a body: API, Redis and Postgres keep each for a while. */
export const answerBytesMax = 2 * 1024 * 1024;

/** The bodies of a successful search. The request's `format` chooses one of them. Keys are in the contract's order. */

const searchedKeyword = z
  .string()
  .exactOptional()
  .meta({
    description:
      "What the engine searched instead of `keyword`, because it corrected the spelling. Missing if it searched `keyword`, " +
      "or if the provider does not tell.",
  });

/** The query of a full answer: what the caller ordered, and what the engine searched where that differs. */
export const answeredQuery = querySchema.omit({ format: true }).extend({ searchedKeyword });

/** The query of a compact answer, which has no types, because all its results are organic. */
export const compactQuery = querySchema.omit({ types: true }).extend({
  format: z.literal("compact").meta({ description: "The format of the answer." }),
  searchedKeyword,
});

const aboutQuery = "The search as it was executed, complete and canonical.";

const creditsCharged = z.int().min(0).meta({
  description:
    "Mils charged for this search: the plan's price, or 0 if an earlier request with the same Idempotency-Key has paid.",
});

const creditsRemaining = z.int().min(0).meta({
  description:
    "Mils available right after this search was admitted: the balance without its price and without the holds of other searches.",
});

const truncated = z
  .literal(true)
  .exactOptional()
  .meta({
    description:
      "Present if results at the end of the page were left out, because the answer would have more than 2 MiB. The results that " +
      "are there keep their ranks.",
  });

export const searchResponseBody = z
  .strictObject({
    requestId,
    query: answeredQuery.meta({ description: aboutQuery }),
    creditsCharged,
    creditsRemaining,
    totalResultsCount: z.int().min(0).meta({ description: "The engine's own estimate, or 0 if it gives none." }),
    truncated,
    results: z
      .array(result)
      .meta({ description: "In rank order. An empty list is a successful answer and is charged." }),
  })
  .meta({ description: "The results and their cost." });

const { title, url, description } = result.shape;

export const compactResult = z
  .strictObject({ title, url, description })
  .meta({ description: "An organic result. All three keys are always present." });

export const compactResponseBody = z
  .strictObject({
    requestId,
    query: compactQuery.meta({ description: aboutQuery }),
    creditsCharged,
    creditsRemaining,
    truncated,
    results: z.array(compactResult).meta({
      description: "The organic results in rank order. An empty list is a successful answer and is charged.",
    }),
  })
  .meta({ description: "The organic results in short, and their cost: the answer in the format `compact`." });

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
