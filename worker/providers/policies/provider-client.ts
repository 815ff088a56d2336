import type { Log } from "../../../shared/log.ts";
import type { Metrics } from "../../../shared/metrics.ts";
import type { Failure, Page, PageOutcome, Provider } from "../provider.ts";
import { AnswerTime } from "./answer-time.ts";
import { type Attempt, noFurtherCall } from "./attempt.ts";
import { Bulkhead } from "./bulkhead.ts";
import { CircuitBreaker } from "./circuit-breaker.ts";
import type { ProviderHttp } from "./http.ts";
import { callForPage } from "./page-call.ts";
import { fetchPages } from "./pages.ts";
import { RetryBudget } from "./retry-budget.ts";
import { withRetry } from "./retry.ts";
import { countUnreadableRows } from "./unreadable-rows.ts";

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
