import pLimit, { type LimitFunction } from "p-limit";
import type { Metrics } from "../../metrics.ts";
import type { PageOutcome, Provider } from "../provider.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";

type Wait = { deadlineAtMs: number; signal: AbortSignal };

/**
 * Limits how many calls this process has running at one provider (`concurrentCallsMax`): to a fixed number, or to one that
 * finds itself. Further calls wait for a slot, first come, first served. The queue needs no limit of its own: a worker runs
 * a bounded number of searches, each with a bounded number of pages, and no call waits longer than the deadline of its
 * attempt.
 */
export class Bulkhead {
  readonly #slots: LimitFunction;
  readonly #adaptive: AdaptiveLimit | undefined;
  readonly #metrics: Metrics;
  readonly #labels: { provider: string };
  #waiting = 0;

  constructor({ name, concurrentCallsMax }: Pick<Provider, "name" | "concurrentCallsMax">, metrics: Metrics) {
    this.#metrics = metrics;
    this.#labels = { provider: name };
    if (concurrentCallsMax === "adaptive") {
      const isUsedUp = () => !this.hasFreeSlot();
      this.#adaptive = new AdaptiveLimit({ isUsedUp, changed: (calls) => this.#resize(calls) });
    }
    const callsMax = this.#adaptive?.calls ?? Number(concurrentCallsMax);
    this.#slots = pLimit(callsMax);
    // A provider in this process has no limit, so the gauge has no value for it.
    if (Number.isFinite(callsMax)) metrics.providerCallsLimit.set(this.#labels, callsMax);
    metrics.providerCallsRunning.set(this.#labels, 0);
  }

  hasFreeSlot(): boolean {
    return this.#slots.activeCount < this.#slots.concurrency;
  }

  /** Calls that may run at once. */
  get callsMax(): number {
    return this.#slots.concurrency;
  }

  /** Calls that wait for a slot. */
  get waiting(): number {
    return this.#waiting;
  }

  /**
   * Runs a call as soon as a slot is free. A call that runs has to end by the deadline itself.
   * @param wait.deadlineAtMs on the clock of `performance.now()`.
   * @returns the outcome of the call, or `busy` if no slot became free before the deadline or the cancellation.
   */
  async run(call: () => Promise<PageOutcome>, wait: Wait): Promise<PageOutcome> {
    if (!this.hasFreeSlot()) return this.#runLater(call, wait);
    this.#metrics.providerSlotWaitSeconds.observe(this.#labels, 0);
    return this.#slots(() => this.#counted(call));
  }

  #runLater(call: () => Promise<PageOutcome>, { deadlineAtMs, signal }: Wait): Promise<PageOutcome> {
    this.#adaptive?.waits();
    const { promise, resolve, reject } = Promise.withResolvers<PageOutcome>();
    const askedAtMs = performance.now();
    let isWaiting = true;
    const endWait = () => {
      isWaiting = false;
      this.#waiting -= 1;
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      this.#metrics.providerSlotWaitSeconds.observe(this.#labels, (performance.now() - askedAtMs) / 1_000);
    };
    const giveUp = () => {
      endWait();
      resolve({ failure: "busy", outOfTime: true });
    };
    this.#waiting += 1;
    const timer = setTimeout(giveUp, Math.max(0, deadlineAtMs - askedAtMs));
    signal.addEventListener("abort", giveUp, { once: true });
    const start = async () => {
      if (!isWaiting) return;
      // From here its own outcome counts: whether a provider hung must not be hidden behind `busy`.
      endWait();
      resolve(await this.#counted(call));
    };
    if (signal.aborted) giveUp();
    else this.#slots(start).catch(reject);
    return promise;
  }

  #resize(calls: number): void {
    this.#slots.concurrency = calls;
    this.#metrics.providerCallsLimit.set(this.#labels, calls);
  }

  async #counted(call: () => Promise<PageOutcome>): Promise<PageOutcome> {
    const gauge = this.#metrics.providerCallsRunning;
    const startedAtMs = performance.now();
    gauge.inc(this.#labels);
    if (!this.hasFreeSlot()) this.#adaptive?.usedUp();
    try {
      const outcome = await call();
      this.#adaptive?.ended(outcome, startedAtMs);
      return outcome;
    } finally {
      gauge.dec(this.#labels);
    }
  }
}
