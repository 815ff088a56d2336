import { waitFor } from "../../../shared/concurrency/wait-for.ts";
import type { Query } from "../../../shared/query/query.ts";
import type { Failure, Page } from "../provider.ts";
import { type Attempt, type CallOptions, cancelAttempt, minCallMs, openAttempt, type Trace } from "./attempt.ts";
import type { ProviderClient } from "./provider-client.ts";

// While another provider could still be tried, an attempt gets this share of the time that is left, with all its pages,
// retries and waits; or the time of one whole call, if that is more. The rest is for the next provider.
const attemptTimeShare = 2 / 3;
/** What one whole call leaves to the next provider at least. Most providers answer within it. */
const nextProviderMsMin = 5_000;

export type FailoverProvider = Pick<ProviderClient, "provider" | "availability" | "reserveHedge" | "fetchPages">;

/** One search, and the providers that can honour it. */
type FailoverRequest = CallOptions & {
  /** In the order of the attempts. */
  providers: readonly FailoverProvider[];
  query: Query;
  /** By provider: the name of the query's city or region in its list of locations. */
  listedLocations?: ReadonlyMap<string, string> | undefined;
  /** On the clock of `performance.now()`. */
  deadlineAtMs: number;
  /** Milliseconds without a first page after which the next provider is tried as well; 0 to never hedge. */
  hedgeAfterMs: number;
  trace: Trace;
};

/** Why no provider answered: the failures, oldest first. */
export type FailoverFailure = {
  failures: Failure[];
  /** Whether the deadline passed, or the caller disconnected, before all providers had been tried. */
  isCutShort: boolean;
};

type Ended = { attempt: Attempt; from: FailoverProvider; outcome: Page[] | Failure };
/** In the order of their start. */
type Running = Map<Attempt, Promise<Ended>>;

/**
 * Tries one provider after the other until one has answered in full. A search is in one of these states:
 *
 * - **idle**: no attempt is running. If a provider and at least 50 ms are left, and a caller waits, an attempt starts:
 *   *single*. Otherwise the search has *failed*.
 * - **single**: one attempt is running. It succeeds: *answered*. It fails: *idle*. While a hedge is pending, a second
 *   attempt starts after each `hedgeAfterMs` without a first page if the next provider allows it: *hedged*.
 * - **hedged**: two attempts are running, and no further hedge is pending for this search. The first attempt that has a
 *   page wins and the other one is cancelled. If the winner answers in full: *answered*. If an attempt fails, the
 *   other one continues, if it still runs: *single*; else *idle*. A provider whose attempt was cancelled goes to the end
 *   of the list, and is tried again if the winner fails after its first page.
 * - **answered** and **failed** are final. No attempt is running any more.
 *
 * @returns all pages of one provider, or why there are none. Never throws.
 */
export async function fetchWithFailover(request: FailoverRequest): Promise<{ pages: Page[] } | FailoverFailure> {
  const { trace, hedgeAfterMs } = request;
  const failures: Failure[] = [];
  const running: Running = new Map();
  const untried = [...request.providers];
  let hedgePending = hedgeAfterMs > 0;
  const startNext = () => {
    const next = mayCall(request) && untried.shift();
    if (!next) return false;
    trace.provider = next.provider.name;
    const hasNext = untried.some((other) => other.availability() !== "open");
    startAttempt(next, attemptAt(next, request, hasNext), running);
    return true;
  };

  for (;;) {
    if (running.size === 0 && !startNext()) return { failures, isCutShort: untried.length > 0 };
    const first = Promise.race(running.values());
    const waited = hedgePending ? await waitFor(first, { timeoutMs: hedgeAfterMs }) : undefined;
    if (waited && waited.ended !== "done") {
      const isSlow = ![...running.keys()].some(({ hasFirstPage }) => hasFirstPage);
      hedgePending = !(isSlow && mayCall(request) && mayHedge(untried[0]) && startNext());
      continue;
    }
    const { attempt, from, outcome } = waited?.value ?? (await first);
    running.delete(attempt);
    if (!("failure" in outcome)) {
      // The cancelled attempt still adds its calls to the trace.
      await Promise.all(running.values());
      trace.provider = from.provider.name;
      return { pages: outcome };
    }
    if (outcome.failure === "lost_hedge" || outcome.failure === "hedge_cancelled") untried.push(from);
    else failures.push(outcome);
  }
}

/** @param hasNext whether another provider, which is not known to fail, could still be tried. */
function attemptAt({ provider }: FailoverProvider, request: FailoverRequest, hasNext: boolean): Attempt {
  const { query, listedLocations } = request;
  const listedLocation = listedLocations?.get(provider.name);
  const now = performance.now();
  const leftMs = request.deadlineAtMs - now;
  const wholeCallMs = Math.min(provider.callTimeoutMs, leftMs - nextProviderMsMin);
  return openAttempt({
    ...request,
    query: listedLocation === undefined ? query : { ...query, listedLocation },
    deadlineAtMs: hasNext ? now + Math.max(leftMs * attemptTimeShare, wholeCallMs) : request.deadlineAtMs,
  });
}

function startAttempt(from: FailoverProvider, attempt: Attempt, running: Running): void {
  const outcome = from.fetchPages(attempt, () => {
    if (!attempt.disconnected?.aborted) cancelLosers(attempt, running.keys());
  });
  running.set(
    attempt,
    outcome.then((ended) => ({ attempt, from, outcome: ended })),
  );
}

function mayCall({ deadlineAtMs, disconnected }: FailoverRequest): boolean {
  return !disconnected?.aborted && deadlineAtMs - performance.now() >= minCallMs;
}

/**
 * Whether a second attempt may start at this provider while the first one is slow: only if it would start at once, and the
 * provider has retry budget left, which this takes. Otherwise failover asks again when the next hedge is due.
 */
function mayHedge(next: FailoverProvider | undefined): boolean {
  return next?.availability() === "ready" && next.reserveHedge();
}

/**
 * Cancels all attempts but the first one that has a page. Attempts that started earlier were slower, which counts against
 * their providers (`lost_hedge`). Attempts that started later had less time, which does not (`hedge_cancelled`).
 */
function cancelLosers(winner: Attempt, running: Iterable<Attempt>): void {
  let kind: "lost_hedge" | "hedge_cancelled" = "lost_hedge";
  for (const attempt of running) {
    if (attempt === winner) kind = "hedge_cancelled";
    else cancelAttempt(attempt, kind);
  }
}
