import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../shared/process/context.ts";
import { throttledWarning } from "../../shared/log.ts";
import type { SlotClaim } from "../providers/policies/attempt.ts";
import { type CallRecorder, newTrace } from "../providers/policies/trace.ts";
import type { Query } from "../../shared/query/query.ts";
import { hasCacheHeadroom } from "./redis-headroom.ts";
import type { EngineAnswer } from "./engine-answer.ts";
import { acquireLease, keepLeaseAlive, publishResult, releaseLease, releaseWithoutResult } from "./flight-leases.ts";
import type { GoogleEngine } from "./google-engine.ts";

const firstPollMs = 10;
const pollMsMax = 50;
const pollBackoff = 1.5;
// If Redis is unreachable for this long, each worker calls the providers for itself.
const redisRetryForMs = 1_000;
const redisTimeoutMs = 500;

/** One query that all searches of this process for the same query share. */
export type FlightRequest = {
  query: Query;
  fingerprint: string;
  /** On the clock of `performance.now()`. */
  deadlineAtMs: number;
  /** By Redis' clock: older answers are ignored. */
  sinceMs: number;
  /** Whether other searches of this process wait for it. Then equal searches may also be in the queue: publish the result. */
  hasWaiters: boolean;
  /** Aborted when no search of this process waits for it any more. */
  disconnected: AbortSignal;
  /** Of the search that started the flight, whichever other searches wait for it. */
  claim: SlotClaim | undefined;
  /** Of the search that started the flight; absent unless raw answers are kept. */
  recorder: CallRecorder | undefined;
};

export type FlightResult = {
  answer: EngineAnswer;
  /** The id of the flight that made the calls; '' if there were none. */
  flight: string;
  /** When the answer arrived, by Redis' clock. */
  atMs: number;
  /** Whether this process called the providers for it. */
  isOwn: boolean;
  /** Whether it failed for lack of time or of callers. It is not shared: other searches may have more time. */
  outOfTime: boolean;
};

/** The answer to a search that waited for a flight of another search until its deadline, or until its caller disconnected. */
export const timedOutWaiting: EngineAnswer = {
  ok: false,
  code: "engine_timeout",
  details: {},
  trace: { ...newTrace(), provider: "none" },
  outOfTime: true,
};

/**
 * Coalesces equal searches of all workers: the worker that holds the lease calls the providers, the others poll Redis for
 * its result. If the holder dies, its lease expires within two seconds and one of the waiting workers takes over. If the
 * holder's flight has lost its callers, it hands the lease over at once, and its own calls that were sent end without being shared.
 * @returns a function that never throws and returns by the deadline of its flight.
 */
export function openDistributedSingleFlight(
  context: Pick<Context, "config" | "redis" | "clock" | "log" | "metrics">,
  google: Pick<GoogleEngine, "search">,
): (flight: FlightRequest) => Promise<FlightResult> {
  const { redis, clock, log, metrics } = context;
  const keepMs = context.config.SEARCH_CACHE_SECONDS * 1_000;
  const warn = throttledWarning(log, "Redis is unreachable: equal searches are not coalesced across workers");
  const failed = (error: unknown): undefined => {
    metrics.backgroundErrors.inc({ where: "leases" });
    warn(error);
    return undefined;
  };

  const fly = async (request: FlightRequest, flight: string): Promise<FlightResult> => {
    const { query, deadlineAtMs, disconnected, recorder, claim } = request;
    const answer = await google.search(query, deadlineAtMs - performance.now(), { disconnected, recorder, claim });
    const outOfTime = !answer.ok && (answer.outOfTime === true || disconnected.aborted);
    return { answer, flight, atMs: clock.nowMs(), isOwn: true, outOfTime };
  };

  const publish = async ({ fingerprint, hasWaiters }: FlightRequest, token: string, result: FlightResult) => {
    const { answer, atMs, outOfTime } = result;
    if (outOfTime) return releaseWithoutResult(redis, fingerprint, token);
    const isKept = answer.ok && keepMs > 0 && (await hasCacheHeadroom(redis));
    if (!isKept && !hasWaiters && (await releaseLease(redis, fingerprint, token)) !== "awaited") return;
    await publishResult(redis, fingerprint, { answer, atMs, token, keepMs: isKept ? keepMs : 0 });
  };

  const flyWithLease = async (flight: FlightRequest, token: string): Promise<FlightResult> => {
    const { fingerprint, disconnected } = flight;
    const stopRenewing = keepLeaseAlive(redis, fingerprint, token);
    const handOver = () => {
      stopRenewing();
      void releaseWithoutResult(redis, fingerprint, token).catch(failed);
    };
    disconnected.addEventListener("abort", handOver, { once: true });
    if (disconnected.aborted) handOver();
    const result = await fly(flight, token);
    disconnected.removeEventListener("abort", handOver);
    // In the background, so that publishing adds nothing to the time of this search.
    if (!disconnected.aborted) void publish(flight, token, result).catch(failed).finally(stopRenewing);
    return result;
  };

  return async (flight) => {
    const token = randomUUID();
    let awaited: string | undefined;
    let pauseMs = firstPollMs;
    let giveUpOnRedisAtMs = performance.now() + redisRetryForMs;
    for (;;) {
      const remainingMs = flight.deadlineAtMs - performance.now();
      if (remainingMs <= 0 || flight.disconnected.aborted)
        return { answer: timedOutWaiting, flight: "", atMs: clock.nowMs(), isOwn: false, outOfTime: true };
      const options = { token, sinceMs: flight.sinceMs, awaited, timeoutMs: Math.min(redisTimeoutMs, remainingMs) };
      const lease = await acquireLease(redis, flight.fingerprint, options).catch(failed);
      if (lease?.kind === "acquired") return flyWithLease(flight, token);
      if (lease?.kind === "published") {
        return { answer: lease.answer, flight: lease.flight, atMs: lease.atMs, isOwn: false, outOfTime: false };
      }
      if (!lease && performance.now() > giveUpOnRedisAtMs) return fly(flight, token);
      if (lease) {
        awaited = lease.holder;
        giveUpOnRedisAtMs = performance.now() + redisRetryForMs;
      }
      const { disconnected: signal } = flight;
      await sleep(Math.min(pauseMs, remainingMs), undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * pollBackoff, pollMsMax);
    }
  };
}
