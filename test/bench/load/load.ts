import { z } from "zod";

/** What a load asks for. `depth-100` is a search of 100 results; `equal` always has the same keyword. */
export const requestKinds = [
  "search",
  "keyed",
  "equal",
  "depth-100",
  "usage",
  "mcp",
  "mcp-2025-11-25",
  "refused",
] as const;
export type RequestKind = (typeof requestKinds)[number];

/** A load for the generator. Without a rate, each connection sends its next request when it has the answer to the last. */
export const loadSchema = z.object({
  urls: z.array(z.string()),
  tokens: z.array(z.string()),
  request: z.enum(requestKinds),
  /** The status of every answer; another one is a failure. */
  status: z.int(),
  connections: z.int(),
  seconds: z.number(),
  /** Requests are due at this rate, whether or not earlier ones are answered. */
  ratePerSecond: z.number().optional(),
});
export type Load = z.infer<typeof loadSchema>;

/** The result of a load. Latencies are those of answers with the expected status. */
export const loadResultSchema = z.object({
  answered: z.int(),
  failed: z.int(),
  firstFailure: z.string().optional(),
  /** From the first request to the last answer. */
  seconds: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  maxMs: z.number(),
  /** With a rate: how much later than scheduled requests were sent. It is part of their latency. */
  sentLateP99Ms: z.number().optional(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;
