import { type Log, throttled } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { Failure, Page, PageOutcome, Provider } from "../provider.ts";
import { type Attempt, cancelAttempt, cancellationFailure, noFurtherCall } from "./attempt.ts";
import { Bulkhead } from "./bulkhead.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { ProviderHttp } from "./http.ts";
import { AnswerTime, callForPage } from "./page-call.ts";
import { RetryBudget, withRetry } from "./retry.ts";
import { pagesOf } from "../../../shared/query/depth.ts";
import { answerBytesMax } from "../../../shared/search-answer.ts";
import { charactersOf } from "../build-element.ts";

// A changed format affects every answer, and one line says all of it.
const logPauseMs = 60_000;

/** `ready`: calls start at once. `saturated`: calls wait for a bulkhead slot. `open`: the circuit breaker is open. */
export type Availability = "ready" | "saturated" | "open";

/** One provider with its policies: breaker( pages( retry( bulkhead( http )))). One per provider and process. */
export class ProviderClient {
  readonly provider: Provider;
  readonly #http: ProviderHttp;
  readonly #breaker: CircuitBreaker;
  readonly #bulkhead: Bulkhead;
  readonly #answerTime = new AnswerTime();
  readonly #retryBudget = new RetryBudget();
  readonly #countUnreadableRows: (outcome: PageOutcome) => void;

  constructor(provider: Provider, { http, metrics, log }: { http: ProviderHttp; metrics: Metrics; log: Log }) {
    this.provider = provider;
    this.#http = http;
    this.#breaker = new CircuitBreaker({ provider: provider.name, metrics, log });
    this.#bulkhead = new Bulkhead(provider, metrics);
    this.#countUnreadableRows = countUnreadableRows({ provider: provider.name, metrics, log });
    // The series exists from the start, so that a dashboard shows 0 and not a gap.
    metrics.providerCostMicroUsd.inc({ provider: provider.name }, 0);
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
   * @returns all pages that the query needs, or why there are none.
   */
  fetchPages(attempt: Attempt, onFirstPage: () => void): Promise<Page[] | Failure> {
    const limits = {
      budget: this.#retryBudget,
      deadlineAtMs: attempt.deadlineAtMs,
      claim: attempt.claim,
      signal: noFurtherCall(attempt),
    };
    const fetchPage = async (pageNumber: number): Promise<PageOutcome> => {
      const called = { provider: this.provider, http: this.#http, answerTime: this.#answerTime };
      const call = () => callForPage(attempt, pageNumber, called);
      const outcome = await withRetry(() => this.#bulkhead.run(call, limits), limits);
      this.#countUnreadableRows(outcome);
      return outcome;
    };
    return this.#breaker.run(() => fetchPages(fetchPage, attempt, onFirstPage));
  }
}

/**
 * Fetches all pages that the depth of the query needs. The first page is fetched alone, because it says whether there are
 * more; the others are fetched concurrently. When one fails, the attempt is cancelled: the caller ordered all of them.
 * @param fetchPage page numbers begin at 1.
 * @param onFirstPage called once the first page has arrived, unless the attempt was cancelled before.
 * @returns the pages in order, or the first failure.
 */
export async function fetchPages(
  fetchPage: (pageNumber: number) => Promise<PageOutcome>,
  attempt: Attempt,
  onFirstPage: () => void,
): Promise<Page[] | Failure> {
  const first = await fetchPage(1);
  if (attempt.cancellation.signal.aborted) return cancellationFailure(attempt);
  if ("failure" in first) return first;
  attempt.hasFirstPage = true;
  onFirstPage();
  const pageCount = first.hasMore ? pagesOf(attempt.query.depth) : 1;
  const pages: Page[] = [first];
  boundPages(pages);
  let failure: Failure | undefined;
  const fetchInto = async (index: number) => {
    const page = await fetchPage(index + 1);
    if (!("failure" in page)) {
      pages[index] = page;
      boundPages(pages);
      return;
    }
    failure ??= page;
    // An attempt without a caller lets the calls that were sent end: aborted ones may be billed all the same.
    if (!attempt.disconnected?.aborted) cancelAttempt(attempt, "dropped");
  };
  await Promise.all(Array.from({ length: pageCount - 1 }, (_, offset) => fetchInto(offset + 1)));
  return failure ?? pages;
}

/**
 * Leaves out the elements that cannot be in the answer, because those before them fill it. So the pages of a search never
 * take much more memory than its answer. Pages that are still missing only add to what comes before.
 * @param pages in page order; a page that has not arrived is a hole or absent.
 */
export function boundPages(pages: Page[]): void {
  let characters = 0;
  for (const page of pages) {
    if (page === undefined) continue;
    // A character has at least one byte.
    const firstBeyond = page.elements.findIndex((element) => {
      characters += charactersOf(element);
      return characters > answerBytesMax;
    });
    if (firstBeyond < 0) continue;
    page.elements.length = firstBeyond;
    page.truncated = true;
  }
}

/** Counts the rows that an adapter could not read, and logs them at most once a minute: the caller gets the rest of the page. */
export function countUnreadableRows(parts: {
  provider: string;
  metrics: Pick<Metrics, "providerUnreadableRows">;
  log: Log;
}): (outcome: PageOutcome) => void {
  const { provider, metrics, log } = parts;
  const warn = throttled(logPauseMs, (rows: number, leftOut) =>
    log.warn({ provider, rows, leftOut }, "an answer had rows that could not be read, the caller got the others"),
  );
  metrics.providerUnreadableRows.inc({ provider }, 0);
  return (outcome) => {
    if ("failure" in outcome || !outcome.unreadableRows) return;
    metrics.providerUnreadableRows.inc({ provider }, outcome.unreadableRows);
    warn(outcome.unreadableRows);
  };
}
