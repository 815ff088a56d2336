import type { Metrics } from "../../../shared/metrics.ts";
import type { PageOutcome, Provider } from "../provider.ts";
import { AdaptiveLimit } from "./adaptive-limit.ts";
import type { SlotClaim } from "./attempt.ts";
import { SlotTurns } from "./slot-turns.ts";

type Wait = { deadlineAtMs: number; signal: AbortSignal; claim: SlotClaim };

/**
 * Limits how many calls this process runs at one provider (`concurrentCallsMax`), to a fixed or a discovered number. Further
 * calls wait for a slot, and organizations take turns (slot-turns.ts). The queue needs no limit: a worker runs a bounded
 * number of searches, each with a bounded number of pages, and no call waits beyond the deadline of its attempt.
 */
export class Bulkhead {
  readonly #turns = new SlotTurns();
  readonly #adaptive: AdaptiveLimit | undefined;
  readonly #metrics: Metrics;
  readonly #labels: { provider: string };
  #callsMax: number;
  #running = 0;
  #isFilling = false;

  constructor({ name, concurrentCallsMax }: Pick<Provider, "name" | "concurrentCallsMax">, metrics: Metrics) {
    this.#metrics = metrics;
    this.#labels = { provider: name };
    if (concurrentCallsMax === "adaptive") {
      this.#adaptive = new AdaptiveLimit({
        isUsedUp: () => !this.hasFreeSlot(),
        callsWaiting: () => this.#turns.waiting,
        changed: (calls) => this.#resize(calls),
      });
    }
    const callsMax = this.#adaptive?.calls ?? Number(concurrentCallsMax);
    this.#callsMax = callsMax;
    // A provider in this process has no limit, so the gauge has no value for it.
    if (Number.isFinite(callsMax)) metrics.providerCallsLimit.set(this.#labels, callsMax);
    metrics.providerCallsRunning.set(this.#labels, 0);
  }

  /** Whether a call would start at once. */
  hasFreeSlot(): boolean {
    return this.#running < this.#callsMax && this.#turns.waiting === 0;
  }

  /** Calls that may run at once. */
  get callsMax(): number {
    return this.#callsMax;
  }

  /** Calls that wait for a slot. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /**
   * Runs a call as soon as a slot is free. A call that runs has to end by the deadline itself.
   * @param wait.deadlineAtMs on the clock of `performance.now()`.
   * @returns the outcome of the call, or `busy` if no slot became free before the deadline or the cancellation.
   */
  run(call: () => Promise<PageOutcome>, wait: Wait): Promise<PageOutcome> {
    if (!this.hasFreeSlot()) return this.#runLater(call, wait);
    this.#metrics.providerSlotWaitSeconds.observe(this.#labels, 0);
    return this.#counted(call, wait.claim);
  }

  #runLater(call: () => Promise<PageOutcome>, { deadlineAtMs, signal, claim }: Wait): Promise<PageOutcome> {
    this.#adaptive?.waits();
    const { promise, resolve } = Promise.withResolvers<PageOutcome>();
    const askedAtMs = performance.now();
    const endWait = () => {
      this.#turns.leave(waiting);
      clearTimeout(timer);
      signal.removeEventListener("abort", giveUp);
      this.#metrics.providerSlotWaitSeconds.observe(this.#labels, (performance.now() - askedAtMs) / 1_000);
    };
    const giveUp = () => {
      endWait();
      resolve({ failure: "busy", outOfTime: true });
    };
    const start = () => {
      // From here on the outcome of the call counts: `busy` must not hide a provider that hangs.
      resolve(this.#counted(call, claim));
      endWait();
    };
    const waiting = { claim, deadlineAtMs, start };
    this.#turns.enter(waiting);
    const timer = setTimeout(giveUp, Math.max(0, deadlineAtMs - askedAtMs));
    signal.addEventListener("abort", giveUp, { once: true });
    if (signal.aborted) giveUp();
    return promise;
  }

  #resize(calls: number): void {
    this.#callsMax = calls;
    this.#metrics.providerCallsLimit.set(this.#labels, calls);
    this.#fill();
  }

  /** Assigns free slots after this turn of the event loop: a search may request its next pages in it. */
  #fill(): void {
    if (this.#isFilling || this.#turns.waiting === 0) return;
    this.#isFilling = true;
    setImmediate(() => {
      this.#isFilling = false;
      while (this.#running < this.#callsMax && this.#turns.waiting > 0) this.#turns.next()?.start();
    });
  }

  async #counted(call: () => Promise<PageOutcome>, claim: SlotClaim): Promise<PageOutcome> {
    const gauge = this.#metrics.providerCallsRunning;
    gauge.inc(this.#labels);
    this.#running += 1;
    const began = { atMs: performance.now(), calls: this.#running };
    this.#turns.started(claim);
    if (!this.hasFreeSlot()) this.#adaptive?.usedUp();
    try {
      const outcome = await call();
      this.#adaptive?.ended(outcome, began);
      return outcome;
    } finally {
      gauge.dec(this.#labels);
      this.#running -= 1;
      this.#turns.ended(claim);
      this.#fill();
    }
  }
}
