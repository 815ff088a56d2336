import { setTimeout as sleep } from "node:timers/promises";
import { type Log, throttled } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import { pagesOf } from "../../../shared/query/depth.ts";
import { pageKey } from "../../../shared/results.ts";
import { answerBytesMax } from "../../../shared/search-answer.ts";
import { charactersOf } from "../build-element.ts";
import {
  type Failure,
  failureKinds,
  type Page,
  type PageAnswer,
  type PageOutcome,
  type PageRequest,
  type Provider,
  withCost,
} from "../provider.ts";
import { type Attempt, cancelAttempt, cancellationFailure, minCallMs, noFurtherCall, SlotClaims } from "./attempt.ts";
import { Bulkhead } from "./bulkhead.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { ProviderHttp } from "./http.ts";

const backoffMs = 100;
const retriesMax = 10;
const callsPerRetry = 10;
const serviceUnavailable = 503;
const newestShare = 0.1;
// Answer times scatter: with less than twice the mean, calls often time out at a provider that works.
const enoughTime = 2;
// So many calls in a row that had too little time say nothing of the provider. Further ones say that it hangs.
const cutOffMax = 20;
// A changed format affects every answer, and one line says all of it.
const logPauseMs = 60_000;
/** What is left of an attempt's time after the call for an AI Overview, without which its answer is complete enough. */
const afterOverviewMs = 500;
/** How long the pages wait for an AI Overview. It is a search of its own, which takes 1 to 4 s. */
const overviewMsMax = 6_000;
const onlySearch = { organizationId: "", openSearches: 1 };

/** `ready`: calls start at once. `saturated`: calls wait for a bulkhead slot. `open`: the circuit breaker is open. */
export type Availability = "ready" | "saturated" | "open";

/** One call: what is sent, and how its answer is read. The number of its page is for the raw answers. */
interface Asked {
  pageNumber: number;
  /** Whether its answer shows how long the provider takes for a page. */
  isPage: boolean;
  request: () => PageRequest;
  read: (answer: PageAnswer) => PageOutcome;
}

/** One provider with its policies: breaker( pages( retry( bulkhead( http )))). One per provider and process. */
export class ProviderClient {
  readonly provider: Provider;
  readonly #http: ProviderHttp;
  readonly #metrics: Metrics;
  readonly #breaker: CircuitBreaker;
  readonly #bulkhead: Bulkhead;
  readonly #retryBudget = new RetryBudget();
  readonly #warnOfUnreadableRows: (rows: number) => void;
  /** How long the provider usually takes for a page: the moving average of the calls that were answered. */
  #meanAnswerMs: number | undefined;
  /** Calls that ended for lack of time since the last one that was answered. */
  #cutOff = 0;

  constructor(provider: Provider, { http, metrics, log }: { http: ProviderHttp; metrics: Metrics; log: Log }) {
    const { name } = provider;
    this.provider = provider;
    this.#http = http;
    this.#metrics = metrics;
    this.#breaker = new CircuitBreaker({ provider: name, metrics, log });
    this.#bulkhead = new Bulkhead(provider, metrics);
    this.#warnOfUnreadableRows = throttled(logPauseMs, (rows: number, leftOut) =>
      log.warn(
        { provider: name, rows, leftOut },
        "an answer had rows that could not be read, the caller got the others",
      ),
    );
    // The series exist from the start, so that a dashboard shows 0 and not a gap.
    metrics.providerCostMicroUsd.inc({ provider: name }, 0);
    metrics.providerUnreadableRows.inc({ provider: name }, 0);
    metrics.truncatedAnswers.inc({ provider: name }, 0);
  }

  availability(): Availability {
    if (this.#breaker.isOpen()) return "open";
    return this.#bulkhead.hasFreeSlot() ? "ready" : "saturated";
  }

  /** Calls that wait for a bulkhead slot. */
  get callsWaiting(): number {
    return this.#bulkhead.waiting;
  }

  /** Calls that may run at once: none while the circuit breaker is open. */
  get callsMax(): number {
    return this.#breaker.isOpen() ? 0 : this.#bulkhead.callsMax;
  }

  /** Takes a hedge from the budget that hedges share with retries. @returns false if none is left. */
  reserveHedge(): boolean {
    return this.#retryBudget.spend();
  }

  /**
   * Runs one attempt. Never throws.
   * @param onFirstPage called once the first page has arrived, unless the attempt was cancelled before.
   * @returns all pages that the query needs, in order, or the first failure.
   */
  fetchPages(attempt: Attempt, onFirstPage: () => void): Promise<Page[] | Failure> {
    const { claims = new SlotClaims(onlySearch) } = attempt;
    return this.#breaker.run(() => this.#fetchAll(attempt, onFirstPage), claims.fewest.organizationId);
  }

  /**
   * Fetches the first page alone, because it says whether there are more, and then the others concurrently. One page that
   * fails cancels the attempt: the caller ordered all of them. Pages that lost their results are fetched once more.
   */
  async #fetchAll(attempt: Attempt, onFirstPage: () => void): Promise<Page[] | Failure> {
    const signal = noFurtherCall(attempt);
    const first = await this.#fetchPage(attempt, 1, signal);
    if (attempt.cancellation.signal.aborted) return cancellationFailure(attempt);
    if ("failure" in first) return first;
    attempt.hasFirstPage = true;
    onFirstPage();
    const { organicPerPage = this.provider.organicPerPage } = first;
    const pageCount = first.hasMore ? pagesOf(attempt.query.depth, organicPerPage) : 1;
    const pages: Page[] = [];
    let characters = 0;
    const add = (index: number, page: Page) => {
      pages[index] = page;
      characters += page.elements.reduce((sum, element) => sum + charactersOf(element), 0);
      // A character has at least one byte.
      if (characters > answerBytesMax) boundPages(pages);
    };
    add(0, first);
    const failures: Failure[] = [];
    const fetchInto = async (index: number) => {
      const page = await this.#fetchPage(attempt, index + 1, signal);
      if (!("failure" in page)) return add(index, page);
      failures.push(page);
      // Without a caller, the calls that were sent run to their end: aborted ones may be billed all the same.
      if (!attempt.disconnected?.aborted) cancelAttempt(attempt, "dropped");
    };
    await Promise.all([
      this.#completeOverview(attempt, first, signal),
      ...Array.from({ length: pageCount - 1 }, (_, offset) => fetchInto(offset + 1)),
    ]);
    const missing = failures.length > 0 ? [] : missingPages(pages);
    if (missing.every(() => this.#retryBudget.spend())) await Promise.all(missing.map(fetchInto));
    const [failure] = failures;
    return failure ?? (missing.length > 0 && missingPages(pages).length > 0 ? { failure: "unreadable" } : pages);
  }

  #fetchPage(attempt: Attempt, pageNumber: number, signal: AbortSignal): Promise<PageOutcome> {
    const { provider } = this;
    const request = () => provider.request(attempt.query, pageNumber);
    return this.#fetch(attempt, { pageNumber, isPage: true, request, read: provider.read }, signal);
  }

  /** Fetches the AI Overview that the first page only announces. If that fails, the search is answered without its text. */
  async #completeOverview(attempt: Attempt, first: Page, signal: AbortSignal): Promise<void> {
    const { overview } = this.provider;
    const token = first.overviewToken;
    if (overview === undefined || token === undefined) return;
    const asked = { pageNumber: 1, isPage: false, request: () => overview.request(token), read: overview.read };
    const deadlineAtMs = Math.min(attempt.deadlineAtMs - afterOverviewMs, performance.now() + overviewMsMax);
    const answer = await this.#fetch({ ...attempt, deadlineAtMs }, asked, signal);
    const found = "failure" in answer ? undefined : answer.elements.find(({ type }) => type === "ai_overview");
    const at = first.elements.findIndex(({ type }) => type === "ai_overview");
    if (found && at >= 0) first.elements[at] = found;
  }

  /**
   * Makes one call as soon as a slot is free. Retries once after a failure that may pass (`retry` in
   * {@link failureKinds}), if budget and deadline allow it. A failure that was not retried for lack of time is marked
   * `outOfTime`.
   * @param signal aborted when no further call may be sent.
   */
  async #fetch(attempt: Attempt, asked: Asked, signal: AbortSignal): Promise<PageOutcome> {
    const { deadlineAtMs, claims = new SlotClaims(onlySearch) } = attempt;
    const call = () => this.#bulkhead.run(() => this.#call(attempt, asked), { deadlineAtMs, signal, claims });
    this.#retryBudget.earn();
    const outcome = await call();
    if (!("failure" in outcome) || !failureKinds[outcome.failure].retry || signal.aborted) return outcome;
    if (deadlineAtMs - performance.now() - backoffMs < minCallMs) return { ...outcome, outOfTime: true };
    if (!this.#retryBudget.spend()) return outcome;
    await sleep(backoffMs, undefined, { signal }).catch(() => undefined);
    return signal.aborted ? outcome : call();
  }

  /** Makes one call. Its outcome, duration and cost go into the trace and the spans, the raw answer to the recorder. Never throws. */
  async #call(attempt: Attempt, asked: Asked): Promise<PageOutcome> {
    const startedAtMs = performance.now();
    const remainingMs = attempt.deadlineAtMs - startedAtMs;
    if (attempt.disconnected?.aborted) return { failure: "dropped", outOfTime: true };
    // The wait for a bulkhead slot may have used the time up.
    if (remainingMs < minCallMs) return { failure: "busy", outOfTime: true };
    const { outcome, answer } = await this.#send(attempt, asked, remainingMs);
    const tookMs = performance.now() - startedAtMs;
    if (!("failure" in outcome)) {
      if (asked.isPage) this.#countTime(tookMs);
      this.#countUnreadableRows(outcome);
    }
    const call = {
      provider: this.provider.name,
      outcome: "failure" in outcome ? outcome.failure : "ok",
      ms: Math.round(tookMs),
      costMicroUsd: outcome.costMicroUsd ?? 0,
      ...(!asked.isPage && { isOverview: true }),
    } as const;
    attempt.trace.calls.push(call);
    attempt.trace.costMicroUsd += call.costMicroUsd;
    attempt.spans?.add("provider call", startedAtMs, { provider: call.provider, outcome: call.outcome });
    attempt.recorder?.record(call, { pageNumber: asked.pageNumber, answer });
    return outcome;
  }

  /** The adapter's request, HTTP, and the adapter's reading. `answer` is undefined if none came. */
  async #send(
    attempt: Attempt,
    asked: Asked,
    remainingMs: number,
  ): Promise<{ outcome: PageOutcome; answer: PageAnswer | undefined }> {
    const { provider } = this;
    const { signal } = attempt.cancellation;
    const timeoutMs = Math.min(provider.callTimeoutMs, remainingMs);
    let answer: PageAnswer | undefined;
    try {
      const sent = await this.#http.send(provider, asked.request(), { timeoutMs, signal });
      if (!("failure" in sent)) answer = sent;
      if (signal.aborted) return { outcome: cancellationFailure(attempt), answer };
      if (!("failure" in sent)) return { outcome: read(asked, sent), answer };
      if (sent.failure !== "timeout") return { outcome: sent, answer };
      const outOfTime = remainingMs < provider.callTimeoutMs;
      const usuallyTakesLonger = this.#meanAnswerMs !== undefined && remainingMs < this.#meanAnswerMs * enoughTime;
      if (!outOfTime || !usuallyTakesLonger || this.#cutOff >= cutOffMax)
        return { outcome: { failure: "timeout", outOfTime }, answer };
      this.#cutOff += 1;
      return { outcome: { failure: "out_of_time", outOfTime }, answer };
    } catch {
      // An adapter that throws met an answer that its author did not foresee. For the caller it is an unreadable answer.
      return { outcome: { failure: "unreadable" }, answer };
    }
  }

  #countTime(tookMs: number): void {
    const meanMs = this.#meanAnswerMs ?? tookMs;
    this.#meanAnswerMs = meanMs + (tookMs - meanMs) * newestShare;
    this.#cutOff = 0;
  }

  #countUnreadableRows({ unreadableRows = 0 }: Page): void {
    if (unreadableRows === 0) return;
    this.#metrics.providerUnreadableRows.inc({ provider: this.provider.name }, unreadableRows);
    this.#warnOfUnreadableRows(unreadableRows);
  }
}

/** Google shows these only beside organic results. */
const besideOrganic: ReadonlySet<string> = new Set(["people_also_ask", "images", "video"]);

/**
 * Whether a page should have organic results, but has none that anyone could find: it would say that nothing ranks. It should if it
 * has some, or unreadable rows; and the first page if Google states how many there are, as it does past the last page too, or shows
 * what stands beside them.
 */
function hasLostOrganic({ elements, unreadableRows = 0, totalResultsCount }: Page, pageNumber: number): boolean {
  const organic = elements.filter(({ type }) => type === "organic");
  const isFirstOfSome =
    pageNumber === 1 && (totalResultsCount > 0 || elements.some(({ type }) => besideOrganic.has(type)));
  return (
    (isFirstOfSome || organic.length + unreadableRows > 0) &&
    organic.every(({ url, domain }) => `${url}${domain}` === "")
  );
}

/**
 * The pages after the first one that add no organic result, although a later page does. Google has none: the provider lost their
 * results, as SerpApi does at times, and all that follow would be ranked too high.
 */
function missingPages(pages: readonly Page[]): number[] {
  const keys = new Set<string>();
  const adding = pages.flatMap(({ elements }, index) => {
    const organic = elements.filter(({ type }) => type === "organic").map(({ url }) => pageKey(url));
    const isAdding = organic.some((key) => key === "" || !keys.has(key));
    for (const key of organic) keys.add(key);
    return isAdding ? [index] : [];
  });
  const last = adding.at(-1) ?? 0;
  return [...pages.keys()].filter((index) => index > 0 && index < last && !adding.includes(index));
}

/** Whether a 5xx was a 503 matters to the limit of calls alone. An adapter only says which 503 is not about the load. */
function read(asked: Asked, answer: PageAnswer): PageOutcome {
  const outcome = asked.read(answer);
  if (!("failure" in outcome) && asked.isPage && hasLostOrganic(outcome, asked.pageNumber))
    return withCost({ failure: "unreadable" }, outcome.costMicroUsd);
  return "failure" in outcome && answer.status === serviceUnavailable ? { overloaded: true, ...outcome } : outcome;
}

/**
 * Limits the retries and hedges of one provider to a tenth of its first calls, with a burst of ten. So they repair
 * occasional failures, and cannot double the load on a provider that is down.
 */
class RetryBudget {
  /** In first calls: {@link callsPerRetry} of them buy a retry. */
  #earnedCalls = retriesMax * callsPerRetry;

  /** Records a first call. */
  earn(): void {
    this.#earnedCalls = Math.min(this.#earnedCalls + 1, retriesMax * callsPerRetry);
  }

  /** Takes one retry. @returns false if none is left. */
  spend(): boolean {
    if (this.#earnedCalls < callsPerRetry) return false;
    this.#earnedCalls -= callsPerRetry;
    return true;
  }
}

/**
 * Drops the elements that cannot be in the answer, because those before them fill it. So the pages of a search never take
 * much more memory than its answer.
 * @param pages in page order. A page that has not arrived yet is a hole or absent; it only adds to what comes before.
 */
export function boundPages(pages: Page[]): void {
  let characters = 0;
  for (const page of pages) {
    if (page === undefined) continue;
    const firstBeyond = page.elements.findIndex((element) => {
      characters += charactersOf(element);
      return characters > answerBytesMax;
    });
    if (firstBeyond < 0) continue;
    page.elements.length = firstBeyond;
    page.truncated = true;
  }
}
