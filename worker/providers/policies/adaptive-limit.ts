import type { PageOutcome } from "../provider.ts";

const callsAtStart = 50;
const callsMin = 1;
const callsMax = 1_000;
const stepMs = 1_000;
const fallTo = 2 / 3;

/**
 * Discovers how many concurrent calls a provider accepts, by additive increase and multiplicative decrease (AIMD) after a
 * doubling start. The limit belongs to one provider in this process.
 *
 * - **doubling**, from the start: one second after all slots were taken, the limit doubles if they are still taken, or if a
 *   call had to wait.
 * - **rising**, after the first sign of overload: the limit rises by one instead.
 * - A sign of overload lowers the limit by a third, at most once a second. Calls that began before the last decrease do not
 *   count, because they say nothing about the lower limit. So one burst, or one wave of timeouts, lowers it once.
 * - At a limit of one, the provider is not refusing the number of calls, so the limit doubles again afterwards.
 *
 * A limit that is not reached does not rise: nothing shows that the provider would accept more.
 */
export class AdaptiveLimit {
  readonly #changed: (calls: number) => void;
  readonly #isUsedUp: () => boolean;
  #calls = callsAtStart;
  #isDoubling = true;
  #fellAtMs = Number.NEGATIVE_INFINITY;
  #rise: NodeJS.Timeout | undefined;
  /** Whether a call had to wait since the rise was scheduled. */
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

  /** Records how a call ended. @param startedAtMs on the clock of `performance.now()`. */
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

/** A timeout for lack of time is no sign of overload: the wait for a slot may have used the time up. */
function isOverload(outcome: PageOutcome): boolean {
  if (!("failure" in outcome)) return false;
  const { failure, overloaded, outOfTime } = outcome;
  return overloaded === true || failure === "rate_limited" || (failure === "timeout" && outOfTime !== true);
}
