import { BrokenCircuitError, bulkhead, circuitBreaker, CircuitState, CountBreaker, handleWhenResult } from "cockatiel";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import { type Failure, failureKinds, type Page, type Provider } from "../provider.ts";
import { RetryBudget } from "./retry-budget.ts";

// More than half of the last twenty searches failed here, of five at least: the provider is passed over, and tried again
// with one search every ten seconds until that succeeds.
const judgedBy = { threshold: 0.5, size: 20, minimumNumberOfCalls: 5 };
const openMs = 10_000;

export type PageOutcome = Page | Failure;

/**
 * The way to one provider in this process: how many calls may be under way at once, whether it is well (a circuit
 * breaker), and how many second calls are left. Other workers find out for themselves.
 */
export class ProviderPolicy {
  readonly provider: Provider;
  readonly retries = new RetryBudget();
  readonly #places;
  readonly #breaker;
  readonly #metrics: Metrics;
  #tryAgainAt = 0;

  constructor(provider: Provider, { metrics, log }: { metrics: Metrics; log: Log }) {
    const { name } = provider;
    this.provider = provider;
    this.#metrics = metrics;
    // What waits is bounded by the searches that a worker runs at once, and waits no longer than these.
    this.#places = bulkhead(provider.concurrentCallsMax, Number.POSITIVE_INFINITY);
    this.#breaker = circuitBreaker(
      handleWhenResult((outcome) => this.#speaksAgainst(outcome)),
      {
        halfOpenAfter: openMs,
        breaker: new CountBreaker(judgedBy),
      },
    );
    this.#breaker.onStateChange((state) => {
      const isOpen = state === CircuitState.Open;
      if (isOpen) this.#tryAgainAt = performance.now() + openMs;
      if (state === CircuitState.HalfOpen) return;
      metrics.providerBreakerOpen.set({ provider: name }, isOpen ? 1 : 0);
      log.warn({ provider: name }, isOpen ? "a provider fails, and is passed over" : "a provider is asked again");
    });
    metrics.providerBreakerOpen.set({ provider: name }, 0);
    metrics.providerCallsRunning.set({ provider: name }, 0);
    metrics.providerCostMicroUsd.inc({ provider: name }, 0);
  }

  /** 0: to be asked; 1: busy, a call would have to wait; 2: passed over, because it fails. */
  availability(): 0 | 1 | 2 {
    if (!this.#isWell()) return 2;
    return this.#places.executionSlots > 0 ? 0 : 1;
  }

  /**
   * Runs one call as soon as there is a place for it. The call itself has to end by the deadline.
   * @returns its outcome, or `busy` where it was given up or no place became free until then.
   */
  async withBulkhead(
    call: () => Promise<PageOutcome>,
    limits: { deadlineAt: number; stop: AbortSignal },
  ): Promise<PageOutcome> {
    if (this.#places.executionSlots > 0) return this.#places.execute(() => this.#counted(call));
    const remainingMs = Math.max(0, Math.ceil(limits.deadlineAt - performance.now()));
    const given = AbortSignal.any([limits.stop, AbortSignal.timeout(remainingMs)]);
    const givenUp = new Promise<Failure>((resolve) => {
      given.addEventListener("abort", () => resolve({ failure: "busy", outOfTime: true }), { once: true });
    });
    return Promise.race([givenUp, this.#places.execute(() => this.#counted(call), given)]);
  }

  /**
   * Runs a whole visit, and takes its outcome for how well the provider is. One that is passed over and asked all the same,
   * because there is nobody else, is asked past its breaker.
   */
  async withBreaker<T extends object>(visit: () => Promise<T | Failure>): Promise<T | Failure> {
    if (!this.#isWell()) return visit();
    let outcome: T | Failure | undefined;
    const judged = async () => {
      outcome = await visit();
      // The breaker would take it for a success, except for what is thrown past it.
      if (illness(outcome) === null && !this.#isTried()) throw new TellsNothing();
      return outcome;
    };
    try {
      return await this.#breaker.execute(judged);
    } catch (error) {
      if (error instanceof TellsNothing && outcome) return outcome;
      // Visits never throw; only the breaker does, whose clock is the machine's and may be set back.
      if (error instanceof BrokenCircuitError) return visit();
      throw error;
    }
  }

  async #counted(call: () => Promise<PageOutcome>): Promise<PageOutcome> {
    const gauge = this.#metrics.providerCallsRunning;
    const labels = { provider: this.provider.name };
    gauge.inc(labels);
    try {
      return await call();
    } finally {
      gauge.dec(labels);
    }
  }

  #isWell(): boolean {
    const { state } = this.#breaker;
    // While one search tries it (half open), the others go on passing it over.
    return state === CircuitState.Closed || (state === CircuitState.Open && performance.now() >= this.#tryAgainAt);
  }

  #isTried(): boolean {
    return this.#breaker.state === CircuitState.HalfOpen;
  }

  /** A trial that told nothing is no success. */
  #speaksAgainst(outcome: unknown): boolean {
    // The policy hands over what the visits above return.
    return illness(outcome as object) ?? this.#isTried();
  }
}

class TellsNothing extends Error {}

/** Whether an outcome speaks against the provider, or null where it tells nothing. */
function illness(outcome: object): boolean | null {
  return "failure" in outcome ? failureKinds[(outcome as Failure).failure].countsAgainstProvider : false;
}
