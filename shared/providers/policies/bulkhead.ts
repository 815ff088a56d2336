import { type BulkheadPolicy, bulkhead } from "cockatiel";
import type { Metrics } from "../../metrics.ts";
import type { PageOutcome, Provider } from "../provider.ts";

/**
 * Limits how many calls this process has running at one provider (`concurrentCallsMax`). Further calls wait for a slot,
 * first come, first served. The queue needs no limit of its own: a worker runs a bounded number of searches, each with a
 * bounded number of pages, and no call waits longer than the deadline of its attempt.
 */
export class Bulkhead {
  readonly #slots: BulkheadPolicy;
  readonly #metrics: Metrics;
  readonly #labels: { provider: string };

  constructor({ name, concurrentCallsMax }: Pick<Provider, "name" | "concurrentCallsMax">, metrics: Metrics) {
    this.#slots = bulkhead(concurrentCallsMax, Number.POSITIVE_INFINITY);
    this.#metrics = metrics;
    this.#labels = { provider: name };
    metrics.providerCallsRunning.set(this.#labels, 0);
  }

  hasFreeSlot(): boolean {
    return this.#slots.executionSlots > 0;
  }

  /**
   * Runs a call as soon as a slot is free. A call that runs has to end by the deadline itself.
   * @param limits.deadlineAtMs on the clock of `performance.now()`.
   * @returns the outcome of the call, or `busy` if no slot became free before the deadline or the cancellation.
   */
  async run(
    call: () => Promise<PageOutcome>,
    { deadlineAtMs, signal }: { deadlineAtMs: number; signal: AbortSignal },
  ): Promise<PageOutcome> {
    if (this.hasFreeSlot()) return this.#slots.execute(() => this.#counted(call));
    const remainingMs = Math.max(0, Math.ceil(deadlineAtMs - performance.now()));
    const waitEnded = AbortSignal.any([signal, AbortSignal.timeout(remainingMs)]);
    let hasStarted = false;
    const start = () => {
      hasStarted = true;
      return this.#counted(call);
    };
    const gaveUp = new Promise<PageOutcome>((resolve) => {
      // Once the call runs, its own outcome counts: whether a provider hung must not be hidden behind `busy`.
      const giveUp = () => !hasStarted && resolve({ failure: "busy", outOfTime: true });
      waitEnded.addEventListener("abort", giveUp, { once: true });
      if (waitEnded.aborted) giveUp();
    });
    return Promise.race([gaveUp, this.#slots.execute(start, waitEnded)]);
  }

  async #counted(call: () => Promise<PageOutcome>): Promise<PageOutcome> {
    const gauge = this.#metrics.providerCallsRunning;
    gauge.inc(this.#labels);
    try {
      return await call();
    } finally {
      gauge.dec(this.#labels);
    }
  }
}
