import { randomUUID } from "node:crypto";
import { addAbortListener } from "node:events";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { InFlightEntries } from "../../shared/concurrency/in-flight-entries.ts";
import { waitFor } from "../../shared/concurrency/wait-for.ts";
import { throttledWarning } from "../../shared/log.ts";
import type { AnswerSource } from "../../shared/outcomes.ts";
import type { Context } from "../../shared/process/context.ts";
import { pagesOf } from "../../shared/query/depth.ts";
import { type Query, queryFingerprint, searchedPart } from "../../shared/query/query.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import { hasRedisHeadroom } from "../../shared/redis/memory.ts";
import { type CallOptions, newTrace, type SlotClaim, SlotClaims, type Trace } from "../providers/policies/attempt.ts";
import {
  acquireLease,
  keepLeaseAlive,
  publishResult,
  releaseLease,
  releaseWithoutResult,
  type TakenLease,
} from "./flight-leases.ts";
import type { EngineAnswer, GoogleEngine } from "./google-engine.ts";

const firstPollMs = 10;
const pollMsMax = 50;
const pollBackoff = 1.5;
// If Redis is unreachable for this long, each worker calls the providers for itself.
const redisRetryForMs = 1_000;
const redisTimeoutMs = 500;
// Of maxmemory. Holds, jobs and replies need the rest: Redis must not refuse them.
const cacheShareMax = 0.6;

export type EngineSearch = Omit<CallOptions, "claims"> & {
  query: Query;
  /** Of its query, if it was acquired with the job. */
  lease?: TakenLease | undefined;
  claim: SlotClaim;
  remainingMs: number;
  /** By Redis' clock. */
  enqueuedAtMs: number;
};

export type SourcedAnswer = EngineAnswer & {
  from: AnswerSource;
  /** When the answer arrived, by Redis' clock; absent if no flight ended. */
  atMs?: number;
  /** Absent where no provider was asked for it. */
  payable?: PayableCalls | undefined;
};

export type Engine = {
  /** Never throws. Returns within `remainingMs`, give or take a few milliseconds. */
  search: (search: EngineSearch) => Promise<SourcedAnswer>;
};

/** One query that all searches of this process for the same query share. Recorder and spans are those of the first one. */
type Flight = CallOptions & {
  query: Query;
  /** Of the searches that wait for it, and of one in another process. */
  claims: SlotClaims;
  fingerprint: string;
  /** The token of the lease that it has already. */
  token: string | undefined;
  /** On the clock of `performance.now()`. */
  deadlineAtMs: number;
  /** By Redis' clock: older answers are ignored. */
  sinceMs: number;
  /** Whether other searches of this process wait for it. Then equal searches may also be in the queue: publish the result. */
  hasWaiters: boolean;
  /** Aborted when no search of this process waits for it any more. */
  disconnected: AbortSignal;
};

type FlightResult = {
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

type InFlight = {
  flight: Flight;
  result: Promise<FlightResult>;
  /** How many searches of this process wait for the result. */
  searches: number;
  /** The latest deadline of them, on the clock of `performance.now()`. */
  latestAtMs: number;
  /** Whether one of them pays for the calls: the one that started the flight or, if its caller disconnected, another one. */
  isPaid: boolean;
  /** One of them does not wait any more. */
  leave: (claim: SlotClaim) => void;
};

type Parts = Pick<Context, "config" | "redis" | "clock" | "log" | "metrics">;

/** The answer to a search that waited for a flight of another search until its deadline, or until its caller disconnected. */
const timedOutWaiting: EngineAnswer = {
  ok: false,
  code: "engine_timeout",
  details: {},
  trace: { ...newTrace(), provider: "none" },
  outOfTime: true,
};

/**
 * Coalesces equal searches into one flight, first in this process, then across all workers. Each search is still settled
 * by itself. It shares an answer only if that arrived after it was enqueued, or at most SEARCH_CACHE_SECONDS before, and no longer
 * before than its caller accepts (`maxAgeSeconds`). So with 0 it may join a call that runs already, as without a cache. A
 * failure is shared only with the searches that waited for that flight, and not if it was for lack of time.
 *
 * A query is in one of two states in this process:
 *
 * - **not in flight**: the next search for it starts a flight.
 * - **in flight**: further searches wait for the result, each until its own deadline, or until its caller has disconnected. When
 *   the result arrives, the query is not in flight any more. A waiting search that cannot share the result starts or joins
 *   the next flight. When no search waits any more, the flight sends no further call, and the query is not in flight any more.
 */
export function openSingleFlight(context: Parts, google: Pick<GoogleEngine, "search">): Engine {
  const { config, metrics } = context;
  const fly = openFlights(context, google);
  const inFlight = new InFlightEntries<InFlight>();

  /** Counts the answer by its source. Only the search that made the calls has them, and their cost, in its trace. */
  const withSource = ({ answer, atMs }: FlightResult, from: AnswerSource, payable?: PayableCalls): SourcedAnswer => {
    if (answer.ok) metrics.answeredSearches.inc({ from });
    if (from === "provider") return { ...answer, from, atMs, payable };
    const { costMicroUsd } = answer.trace;
    if (answer.ok) metrics.providerCostSavedMicroUsd.inc({ from }, costMicroUsd);
    return { ...answer, from, atMs, payable, trace: { ...answer.trace, calls: [], costMicroUsd: 0 } };
  };

  const search = async (request: EngineSearch): Promise<SourcedAnswer> => {
    const { remainingMs, enqueuedAtMs, disconnected, claim, recorder, spans } = request;
    const deadlineAtMs = performance.now() + remainingMs;
    const { maxAgeSeconds = Number.POSITIVE_INFINITY } = request.query;
    const sinceMs = enqueuedAtMs - Math.min(config.SEARCH_CACHE_SECONDS, maxAgeSeconds) * 1_000;
    const sourceByAge = ({ atMs }: FlightResult) => (atMs >= enqueuedAtMs ? "shared" : "cache");
    const query = searchedPart(request.query);
    const fingerprint = queryFingerprint(query);
    for (;;) {
      if (disconnected?.aborted) return { ...timedOutWaiting, from: "shared" };
      const other = inFlight.get(fingerprint);
      if (!other) {
        const claims = new SlotClaims(claim);
        const token = request.lease?.use(fingerprint);
        const flight = { query, fingerprint, token, deadlineAtMs, sinceMs, claims, recorder, spans };
        const started = startFlight(fly, inFlight, flight);
        const leave = () => started.leave(claim);
        disconnected?.addEventListener("abort", leave, { once: true });
        const own = await started.result;
        disconnected?.removeEventListener("abort", leave);
        const isLeftToOthers = disconnected?.aborted && started.searches > 0;
        const payable = isLeftToOthers ? undefined : payableCalls(started, own, query);
        return withSource(own, own.isOwn ? "provider" : sourceByAge(own), payable);
      }
      // That flight may wait for the lease.
      void request.lease?.release();
      other.flight.hasWaiters = true;
      other.searches += 1;
      other.latestAtMs = Math.max(other.latestAtMs, deadlineAtMs);
      other.flight.claims.join(claim);
      const timeoutMs = deadlineAtMs - performance.now();
      const wait = await waitFor(other.result, { timeoutMs, signal: disconnected });
      if (wait.ended !== "done") {
        other.leave(claim);
        return { ...timedOutWaiting, from: "shared" };
      }
      const result = wait.value;
      // The flight may have had less time than this search, or have accepted an older answer. If it called the providers, it
      // ended while this search waited, which times of two processes' clocks need not show.
      if (result.outOfTime || (!result.isOwn && result.atMs < sinceMs)) {
        // The search with the most time starts the next flight. One with little time would fail it for all of them again.
        if (deadlineAtMs < other.latestAtMs) await nextTurn();
        continue;
      }
      return withSource(result, result.isOwn ? "shared" : sourceByAge(result), payableCalls(other, result, query));
    }
  };
  return { search };
}

function startFlight(
  fly: (flight: Flight) => Promise<FlightResult>,
  inFlight: InFlightEntries<InFlight>,
  request: Omit<Flight, "hasWaiters" | "disconnected">,
): InFlight {
  const { fingerprint } = request;
  const disconnection = new AbortController();
  const flight: Flight = { ...request, hasWaiters: false, disconnected: disconnection.signal };
  const forget = () => {
    if (inFlight.get(fingerprint) === started) inFlight.delete(fingerprint);
  };
  const leave = (claim: SlotClaim) => {
    flight.claims.leave(claim);
    started.searches -= 1;
    if (started.searches > 0) return;
    forget();
    disconnection.abort();
  };
  const result = fly(flight).finally(forget);
  const started: InFlight = { flight, result, searches: 1, latestAtMs: flight.deadlineAtMs, isPaid: false, leave };
  inFlight.set(fingerprint, started);
  return started;
}

/** The calls that a search has to pay for, of a flight whose result it gets: all of them, unless another search does. */
function payableCalls(
  inFlight: InFlight,
  { answer, flight, isOwn }: FlightResult,
  query: Query,
): PayableCalls | undefined {
  if (!isOwn && !answer.ok) return undefined;
  const pays = isOwn && !inFlight.isPaid;
  inFlight.isPaid = true;
  return { flight, calls: pays ? countPayable(answer.trace, query) : 0 };
}

/** We bear failed calls, calls to earlier providers, and calls of the attempt that lost a hedge. */
function countPayable({ provider, calls }: Trace, { depth }: Query): number {
  const sent = calls.filter((call) => call.provider === provider && /^(ok|out_of_time)$/.test(call.outcome));
  return Math.min(sent.length, pagesOf(depth) + (sent.some(({ isOverview }) => isOverview) ? 1 : 0));
}

/**
 * Coalesces the flights of all workers: the worker that holds the lease calls the providers, the others poll Redis for its
 * result. If the holder dies, its lease expires within two seconds and one of the waiting workers takes over. If the
 * holder's flight has lost its callers, it hands the lease over at once, and its own calls that were sent end without being
 * shared.
 * @returns a function that returns by the deadline of its flight, and throws only what is a defect of the engine.
 */
function openFlights(context: Parts, google: Pick<GoogleEngine, "search">): (flight: Flight) => Promise<FlightResult> {
  const { redis, clock, log, metrics } = context;
  const keepMs = context.config.SEARCH_CACHE_SECONDS * 1_000;
  const warn = throttledWarning(log, "Redis is unreachable: equal searches are not coalesced across workers");
  const failed = (error: unknown): undefined => {
    metrics.backgroundErrors.inc({ where: "leases" });
    warn(error);
  };

  const callProviders = async ({ query, deadlineAtMs, ...call }: Flight, token: string): Promise<FlightResult> => {
    const answer = await google.search(query, deadlineAtMs - performance.now(), call);
    const outOfTime = !answer.ok && (answer.outOfTime === true || call.disconnected.aborted);
    return { answer, flight: token, atMs: clock.nowMs(), isOwn: true, outOfTime };
  };

  const publish = async ({ fingerprint, hasWaiters }: Flight, token: string, result: FlightResult) => {
    const { answer, atMs, outOfTime } = result;
    if (outOfTime) return releaseWithoutResult(redis, fingerprint, token);
    const isKept = answer.ok && keepMs > 0 && (await hasRedisHeadroom(redis, cacheShareMax));
    if (!isKept && !hasWaiters) {
      const after = answer.ok ? "answer" : "failure";
      if ((await releaseLease(redis, fingerprint, token, { after })) !== "awaited") return;
    }
    await publishResult(redis, fingerprint, { answer, atMs, token, keepMs: isKept ? keepMs : 0 });
  };

  const flyWithLease = async (flight: Flight, token: string): Promise<FlightResult> => {
    const { fingerprint, claims, disconnected } = flight;
    const stopRenewing = keepLeaseAlive(redis, fingerprint, token, claims);
    const handOver = () => {
      stopRenewing();
      void releaseWithoutResult(redis, fingerprint, token).catch(failed);
    };
    const listening = addAbortListener(disconnected, handOver);
    const result = await callProviders(flight, token).catch((defect: unknown) => {
      handOver(); // Otherwise the lease would be renewed, and equal searches would wait for it, until this process ends.
      throw defect;
    });
    listening[Symbol.dispose]();
    // In the background, so that publishing adds nothing to the time of this search.
    if (!disconnected.aborted) void publish(flight, token, result).catch(failed).finally(stopRenewing);
    return result;
  };

  return async (flight) => {
    if (flight.token !== undefined) return flyWithLease(flight, flight.token);
    const token = randomUUID();
    const { fingerprint, deadlineAtMs, sinceMs, claims, disconnected } = flight;
    let awaited: string | undefined;
    let pauseMs = firstPollMs;
    let giveUpOnRedisAtMs = performance.now() + redisRetryForMs;
    for (;;) {
      const remainingMs = deadlineAtMs - performance.now();
      if (remainingMs <= 0 || disconnected.aborted)
        return { answer: timedOutWaiting, flight: "", atMs: clock.nowMs(), isOwn: false, outOfTime: true };
      const wanted = { token, sinceMs, claim: claims.fewest, timeoutMs: Math.min(redisTimeoutMs, remainingMs) };
      const lease = await acquireLease(redis, fingerprint, { ...wanted, awaited }).catch(failed);
      if (lease?.kind === "acquired") return flyWithLease(flight, token);
      if (lease?.kind === "published")
        return { answer: lease.answer, flight: lease.flight, atMs: lease.atMs, isOwn: false, outOfTime: false };
      if (!lease && performance.now() > giveUpOnRedisAtMs) return callProviders(flight, token);
      if (lease) {
        awaited = lease.holder;
        giveUpOnRedisAtMs = performance.now() + redisRetryForMs;
      }
      await sleep(Math.min(pauseMs, remainingMs), undefined, { signal: disconnected }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * pollBackoff, pollMsMax);
    }
  };
}
