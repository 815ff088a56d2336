import { InFlightEntries } from "../../shared/concurrency/in-flight-entries.ts";
import { waitFor } from "../../shared/concurrency/with-timeout.ts";
import type { Context } from "../../shared/process/context.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import type { SlotClaim } from "../providers/policies/attempt.ts";
import type { CallRecorder, Trace } from "../providers/policies/trace.ts";
import { pagesOf } from "../../shared/query/depth.ts";
import { type Query, queryFingerprint, searchedPart } from "../../shared/query/query.ts";
import type { AnswerSource } from "../../shared/outcomes.ts";
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
  /** Decides when its calls get a slot; absent: as for an organization without any other search. */
  claim?: SlotClaim | undefined;
  /** Aborted when its caller has disconnected: no further call is sent for it alone, and those that were sent end normally. */
  disconnected?: AbortSignal | undefined;
  /** Gets the calls that are made for this search; absent unless raw answers are kept. */
  recorder?: CallRecorder | undefined;
};

export type SourcedAnswer = EngineAnswer & {
  from: AnswerSource;
  /** Absent where no provider was asked for it. */
  payable?: PayableCalls | undefined;
};

export type Engine = {
  /** Never throws. Returns within `remainingMs`, give or take a few milliseconds. */
  search: (search: EngineSearch) => Promise<SourcedAnswer>;
};

type InFlight = {
  flight: FlightRequest;
  result: Promise<FlightResult>;
  /** How many searches of this process wait for the result. */
  searches: number;
  /** Whether one of them has taken on the calls: the one that started the flight or, if its caller disconnected, another one. */
  isBorne: boolean;
  /** One of them does not wait any more. */
  leave: () => void;
};

/**
 * Coalesces equal searches into one flight, first in this process, then across all workers. Each search is still settled
 * by itself. It shares an answer only if that arrived after it was enqueued, or at most SEARCH_CACHE_SECONDS before. A
 * failure is shared only with the searches that waited for that flight, and not if it was for lack of time.
 *
 * A query is in one of two states in this process:
 *
 * - **not in flight**: the next search for it starts a flight.
 * - **in flight**: further searches wait for the result, each until its own deadline, or until its caller has disconnected. When
 *   the result arrives, the query is not in flight any more. A waiting search that cannot share the result starts or joins
 *   the next flight. When no search waits any more, the flight sends no further call, and the query is not in flight any more.
 */
export function openSingleFlight(
  context: Pick<Context, "config" | "redis" | "clock" | "log" | "metrics">,
  google: Pick<GoogleEngine, "search">,
): Engine {
  const { config, metrics } = context;
  const fly = openDistributedSingleFlight(context, google);
  const inFlight = new InFlightEntries<InFlight>();

  /** Counts the answer by its source. Only the search that made the calls has them, and their cost, in its trace. */
  const withSource = ({ answer }: FlightResult, from: AnswerSource, payable?: PayableCalls): SourcedAnswer => {
    if (answer.ok) metrics.answeredSearches.inc({ from });
    if (from === "provider") return { ...answer, from, payable };
    const { costMicroUsd } = answer.trace;
    if (answer.ok) metrics.providerCostSavedMicroUsd.inc({ from }, costMicroUsd);
    return { ...answer, from, payable, trace: { ...answer.trace, calls: [], costMicroUsd: 0 } };
  };

  const search = async (request: EngineSearch): Promise<SourcedAnswer> => {
    const { remainingMs, enqueuedAtMs, claim, disconnected, recorder } = request;
    const deadlineAtMs = performance.now() + remainingMs;
    const sinceMs = enqueuedAtMs - config.SEARCH_CACHE_SECONDS * 1_000;
    const sourceByAge = ({ atMs }: FlightResult) => (atMs >= enqueuedAtMs ? "shared" : "cache");
    const query = searchedPart(request.query);
    const fingerprint = queryFingerprint(query);
    for (;;) {
      if (disconnected?.aborted) return { ...timedOutWaiting, from: "shared" };
      const other = inFlight.get(fingerprint);
      if (!other) {
        const flight = { query, fingerprint, deadlineAtMs, sinceMs, claim, recorder };
        const started = startFlight(fly, inFlight, flight);
        disconnected?.addEventListener("abort", started.leave, { once: true });
        const own = await started.result;
        disconnected?.removeEventListener("abort", started.leave);
        const isLeftToOthers = disconnected?.aborted && started.searches > 0;
        const payable = isLeftToOthers ? undefined : bearCalls(started, own, query);
        return withSource(own, own.isOwn ? "provider" : sourceByAge(own), payable);
      }
      other.flight.hasWaiters = true;
      other.searches += 1;
      const timeoutMs = deadlineAtMs - performance.now();
      const wait = await waitFor(other.result, { timeoutMs, signal: disconnected });
      if (wait.ended !== "done") {
        other.leave();
        return { ...timedOutWaiting, from: "shared" };
      }
      const result = wait.value;
      // The flight may have had less time than this search, or have accepted an older answer. If it called the providers, it
      // ended while this search waited, which times of two processes' clocks need not show.
      if (result.outOfTime || (!result.isOwn && result.atMs < sinceMs)) continue;
      return withSource(result, result.isOwn ? "shared" : sourceByAge(result), bearCalls(other, result, query));
    }
  };
  return { search };
}

function startFlight(
  fly: (flight: FlightRequest) => Promise<FlightResult>,
  inFlight: InFlightEntries<InFlight>,
  request: Omit<FlightRequest, "hasWaiters" | "disconnected">,
): InFlight {
  const { fingerprint } = request;
  const disconnection = new AbortController();
  const flight: FlightRequest = { ...request, hasWaiters: false, disconnected: disconnection.signal };
  const forget = () => {
    if (inFlight.get(fingerprint) === started) inFlight.delete(fingerprint);
  };
  const leave = () => {
    started.searches -= 1;
    if (started.searches > 0) return;
    forget();
    disconnection.abort();
  };
  const started: InFlight = { flight, result: fly(flight).finally(forget), searches: 1, isBorne: false, leave };
  inFlight.set(fingerprint, started);
  return started;
}

/** The calls that a search has to pay for, of a flight whose result it gets: all of them, unless another search does. */
function bearCalls(
  inFlight: InFlight,
  { answer, flight, isOwn }: FlightResult,
  query: Query,
): PayableCalls | undefined {
  if (!isOwn && !answer.ok) return undefined;
  const bears = isOwn && !inFlight.isBorne;
  inFlight.isBorne = true;
  return { flight, calls: bears ? countPayable(answer.trace, query) : 0 };
}

/** Calls that failed, those to earlier providers, and those of the other one of a hedge are the provider's affair. */
function countPayable({ provider, calls }: Trace, { depth }: Query): number {
  const sent = calls.filter((call) => call.provider === provider && /^(ok|out_of_time)$/.test(call.outcome));
  return Math.min(sent.length, pagesOf(depth));
}
