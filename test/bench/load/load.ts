import { z } from "zod";

/** The requests of a load. `depth-100` is a search of 100 results; `equal` always has the same keyword. */
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

/**
 * A load for the generator. Without a rate, each connection sends its next request when it has the answer to the previous one.
 */
export const loadSchema = z.object({
  urls: z.array(z.string()),
  tokens: z.array(z.string()),
  request: z.enum(requestKinds),
  /** The status of every answer; another one is a failure. */
  status: z.int(),
  /** Whether 503 is no failure. Without a rate, a connection that gets one waits for its Retry-After. */
  mayRefuse: z.boolean().optional(),
  connections: z.int(),
  seconds: z.number(),
  /**
   * How long the load runs before it is measured, in addition to `seconds`. Without a rate, connections start one after the
   * other during that time, because connections that start together would wait for a slow provider in step.
   */
  leadSeconds: z.number().optional(),
  /** Requests are due at this rate, whether or not earlier ones are answered. */
  ratePerSecond: z.number().optional(),
  /** Another rate for the lead. */
  leadRatePerSecond: z.number().optional(),
});
export type Load = z.infer<typeof loadSchema>;

/** The result of a load. Rates and latencies exclude the lead. */
export const loadResultSchema = z.object({
  /** Answers with the expected status, including those during the lead. */
  answered: z.int(),
  failed: z.int(),
  firstFailure: z.string().optional(),
  /** From the end of the lead to the last answer. */
  searchesPerSecond: z.number(),
  /** Only if the service may refuse. */
  refusedPerSecond: z.number().optional(),
  /** Only if the service refused. */
  refusedP99Ms: z.number().optional(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  maxMs: z.number(),
  /** With a rate: how much later than scheduled requests were sent. It is part of their latency. */
  sentLateP99Ms: z.number().optional(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;
