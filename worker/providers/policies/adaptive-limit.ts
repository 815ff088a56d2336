import type { PageOutcome } from "../provider.ts";

const callsAtStart = 50;
const callsMin = 1;
const callsMax = 1_000;
const stepMs = 1_000;
const fallTo = 2 / 3;

/**
 * Finds how many calls at once a provider takes: additive increase, multiplicative decrease (AIMD), after a start that
 * doubles. The limit belongs to one provider in this process.
 *
 * - **doubling**, from the start: a second after all slots were taken, the limit doubles if they still are, or if a call had
 *   to wait meanwhile.
 * - **rising**, after the first sign of overload: the limit rises by one in that second.
 * - A sign of overload makes it fall by a third, at most once a second. Calls that began before the last fall are no sign:
 *   they say nothing about the lower limit. So the limit falls once for one burst, and once for one wave of time-outs.
 * - At a limit of one it is not the number of calls that the provider refuses, so it doubles again afterwards.
 *
 * A limit that is not used up does not rise: nothing shows that the provider would take more.
 */
export class AdaptiveLimit {
  readonly #changed: (calls: number) => void;
  readonly #isUsedUp: () => boolean;
  #calls = callsAtStart;
  #isDoubling = true;
  #fellAtMs = Number.NEGATIVE_INFINITY;
  #rise: NodeJS.Timeout | undefined;
  /** Whether a call had to wait since the rise was planned. */
  #hasWaited = false;

  /**
   * @param options.isUsedUp whether as many calls run as the limit allows.
   * @param options.changed gets each new limit.
   */
  constructor({ isUsedUp, changed }: { isUsedUp: () => boolean; changed: (calls: number) => void }) {
    this.#isUsedUp = isUsedUp;
    this.#changed = changed;
  }

  /** The calls that may run at once. */
  get calls(): number {
    return this.#calls;
  }

  /** To be called when a call takes the last slot. */
  usedUp(): void {
    if (this.#calls >= callsMax) return;
    this.#rise ??= setTimeout(() => {
      const isShort = this.#hasWaited || this.#isUsedUp();
      this.#forgetRise();
      if (isShort) this.#set(this.#isDoubling ? this.#calls * 2 : this.#calls + 1);
    }, stepMs).unref();
  }

  /** To be called when a call finds no slot. */
  waits(): void {
    this.usedUp();
    this.#hasWaited = true;
  }

  /** Takes note of how a call ended. @param startedAtMs on the clock of `performance.now()`. */
  ended(outcome: PageOutcome, startedAtMs: number): void {
    if (!isOverload(outcome)) return;
    const nowMs = performance.now();
    if (startedAtMs <= this.#fellAtMs || nowMs - this.#fellAtMs < stepMs) return;
    this.#fellAtMs = nowMs;
    this.#forgetRise();
    this.#set(Math.floor(this.#calls * fallTo));
    this.#isDoubling = this.#calls === callsMin;
  }

  #forgetRise(): void {
    clearTimeout(this.#rise);
    this.#rise = undefined;
    this.#hasWaited = false;
  }

  #set(calls: number): void {
    this.#calls = Math.min(Math.max(calls, callsMin), callsMax);
    this.#changed(this.#calls);
  }
}

/** Not a time-out for lack of time, which the wait for a slot may have used up. */
function isOverload(outcome: PageOutcome): boolean {
  if (!("failure" in outcome)) return false;
  const { failure, overloaded, outOfTime } = outcome;
  return overloaded === true || failure === "rate_limited" || (failure === "timeout" && outOfTime !== true);
}
