import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../shared/context.ts";
import { type Query, queryFingerprint } from "../../shared/query/query.ts";
import type { AnswerSource } from "../../shared/queue/replies.ts";
import {
  type FlightRequest,
  type FlightResult,
  openDistributedSingleFlight,
  timedOutWaiting,
} from "./distributed-single-flight.ts";
import type { EngineAnswer } from "./engine-answer.ts";
import type { GoogleEngine } from "./google-engine.ts";

export type EngineSearch = {
  query: Query;
  remainingMs: number;
  /** By Redis' clock. */
  enqueuedAtMs: number;
};

export type SourcedAnswer = EngineAnswer & { from: AnswerSource };

export type Engine = {
  /** Never throws. Returns within `remainingMs`, give or take a few milliseconds. */
  search: (search: EngineSearch) => Promise<SourcedAnswer>;
};

/**
 * Coalesces equal searches into one flight, first in this process, then across all workers. Each search is still settled
 * by itself. It shares an answer only if that arrived after it was enqueued, or at most SEARCH_CACHE_SECONDS before. A
 * failure is shared only with the searches that waited for that flight, and not if it was for lack of time.
 *
 * A query is in one of two states in this process:
 *
 * - **not in flight**: the next search for it starts a flight.
 * - **in flight**: further searches wait for the result, each until its own deadline. When the result arrives, the query is
 *   not in flight any more. A waiting search that cannot share the result starts or joins the next flight.
 */
export function openSingleFlight(
  context: Pick<Context, "config" | "redis" | "clock" | "log" | "metrics">,
  google: Pick<GoogleEngine, "search">,
): Engine {
  const { config, metrics } = context;
  const startFlight = openDistributedSingleFlight(context, google);
  const inFlight = new Map<string, { flight: FlightRequest; result: Promise<FlightResult> }>();

  /** Counts the answer by its source. Only the search that made the calls has them, and their cost, in its trace. */
  const withSource = ({ answer, atMs }: FlightResult, enqueuedAtMs: number, isOwn: boolean): SourcedAnswer => {
    const from: AnswerSource = isOwn ? "provider" : atMs >= enqueuedAtMs ? "shared" : "cache";
    if (answer.ok) metrics.answeredSearches.inc({ from });
    if (isOwn) return { ...answer, from };
    const { provider, costMicroUsd } = answer.trace;
    if (answer.ok) metrics.providerCostSavedMicroUsd.inc({ from }, costMicroUsd);
    return { ...answer, from, trace: { provider, calls: [], costMicroUsd: 0 } };
  };

  const search = async (request: EngineSearch): Promise<SourcedAnswer> => {
    const { remainingMs, enqueuedAtMs } = request;
    const deadlineAtMs = performance.now() + remainingMs;
    const sinceMs = enqueuedAtMs - config.SEARCH_CACHE_SECONDS * 1_000;
    // The target domain only filters the answer afterwards.
    const { targetDomain: _, ...query } = request.query;
    const fingerprint = queryFingerprint(query);
    for (;;) {
      const other = inFlight.get(fingerprint);
      if (!other) {
        const flight: FlightRequest = { query, fingerprint, deadlineAtMs, sinceMs, hasWaiters: false };
        const result = startFlight(flight);
        inFlight.set(fingerprint, { flight, result });
        const own = await result.finally(() => inFlight.delete(fingerprint));
        return withSource(own, enqueuedAtMs, own.isOwn);
      }
      other.flight.hasWaiters = true;
      const result = await resultBefore(deadlineAtMs, other.result);
      if (!result) return { ...timedOutWaiting, from: "shared" };
      // The flight may have had less time than this search, or have accepted an older answer.
      if (!result.outOfTime && result.atMs >= sinceMs) return withSource(result, enqueuedAtMs, false);
    }
  };
  return { search };
}

async function resultBefore(deadlineAtMs: number, result: Promise<FlightResult>): Promise<FlightResult | undefined> {
  const timer = new AbortController();
  const timeout = sleep(Math.max(0, deadlineAtMs - performance.now()), undefined, { signal: timer.signal });
  try {
    return await Promise.race([result, timeout.catch(() => undefined)]);
  } finally {
    timer.abort();
  }
}
