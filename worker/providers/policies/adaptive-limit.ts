import type { Failure, PageOutcome } from "../provider.ts";

const callsAtStart = 50;
const callsMin = 1;
const callsMax = 1_000;
const stepMs = 1_000;
const quickStepMs = 50;
const fallTo = 2 / 3;
/** Answered calls that excuse one failed call. So a twentieth of the calls may fail. */
const answersPerExcuse = 20;
const excusesMax = 10;

/** The slots that a limit is of. */
interface Slots {
  /** Whether as many calls run as the limit allows. */
  isUsedUp: () => boolean;
  /** How many calls wait for a slot. */
  callsWaiting: () => number;
  /** Gets each new limit. */
  changed: (calls: number) => void;
}

/**
 * Discovers how many concurrent calls a provider accepts, by additive increase and multiplicative decrease (AIMD) after a
 * doubling start. The limit belongs to one provider in this process.
 *
 * - **doubling**, from the start: 50 ms after a call had to wait, the limit doubles if calls still wait and the provider has
 *   answered calls that began with as many at once as the limit allows, or if the limit is that of the start. Otherwise one second
 *   after all slots were taken, if they are still taken, or if a call had to wait.
 * - **rising**, after the first sign of overload: the limit rises by one a second instead.
 * - A sign of overload lowers the limit by a third, and at the end of doubling at least to the most calls at once that the
 *   provider has answered; at most once a second. Calls that began before the last decrease do not count, because they say nothing
 *   about the lower limit. So one burst, or one wave of timeouts, lowers it once.
 * - A 503 or a timeout is a sign of overload only if it is not excused: of the calls to any provider, a few fail or hang whatever
 *   the load, and a caller may know a keyword that does. Each 20 answered calls excuse one such call, with ten excuses saved up at
 *   most. A 429 is never excused, because it is about the number of calls.
 * - Nor is it a sign while only the calls of one organization fail, whose keywords may be the cause: load fails those of others
 *   too. So an answered call of another organization since its first failed call makes up for one of its failed calls, with 200
 *   saved up at most. The last 20 make up for none: so few may be answered by chance.
 * - At a limit of one, the provider is not refusing the number of calls, so the limit doubles again afterwards.
 *
 * A limit that is not reached does not rise: nothing shows that the provider would accept more.
 */
export class AdaptiveLimit {
  readonly #slots: Slots;
  #calls = callsAtStart;
  #isDoubling = true;
  /** The most calls at once, when one began that was answered since the last decrease; before any, the limit of the start. */
  #answered = callsAtStart;
  /** In answered calls: {@link answersPerExcuse} of them excuse a failed one. */
  #excusing = excusesMax * answersPerExcuse;
  /** The organization of the last failed call, and the answered calls of others since it is this one. */
  #failing = "";
  #othersAnswered = 0;
  #fellAtMs = Number.NEGATIVE_INFINITY;
  #rise: NodeJS.Timeout | undefined;
  #quickRise: NodeJS.Timeout | undefined;
  /** Whether a call had to wait since the rise was scheduled. */
  #hasWaited = false;

  constructor(slots: Slots) {
    this.#slots = slots;
  }

  /** The calls that may run at once. */
  get calls(): number {
    return this.#calls;
  }

  /** To be called when a call takes the last slot. */
  usedUp(): void {
    if (this.#calls >= callsMax) return;
    this.#rise ??= setTimeout(() => {
      const isShort = this.#hasWaited || this.#slots.isUsedUp();
      this.#forgetRise();
      if (isShort) this.#set(this.#isDoubling ? this.#calls * 2 : this.#calls + 1);
    }, stepMs).unref();
  }

  /** To be called when a call finds no slot. */
  waits(): void {
    this.usedUp();
    this.#hasWaited = true;
    this.#riseQuickly();
  }

  #riseQuickly(): void {
    const isKnown = this.#calls <= this.#answered;
    if (!this.#isDoubling || !isKnown || this.#calls >= callsMax) return;
    this.#quickRise ??= setTimeout(() => {
      this.#quickRise = undefined;
      if (this.#slots.callsWaiting() === 0) return;
      this.#forgetRise();
      this.#set(this.#calls * 2);
      this.#riseQuickly();
    }, quickStepMs).unref();
  }

  /**
   * Records how a call ended.
   * @param began.atMs on the clock of `performance.now()`. @param began.calls how many ran at once then, with this one.
   */
  ended(outcome: PageOutcome, began: { atMs: number; calls: number; organizationId: string }): void {
    if (!("failure" in outcome)) return this.#answers(began);
    const isOverload = outcome.failure === "rate_limited" || (mayBeOverload(outcome) && !this.#failsAlone(began));
    const nowMs = performance.now();
    if (!isOverload || began.atMs <= this.#fellAtMs || nowMs - this.#fellAtMs < stepMs) return;
    if (outcome.failure !== "rate_limited" && this.#excuse()) return;
    this.#fellAtMs = nowMs;
    this.#forgetRise();
    const fallen = Math.floor(this.#calls * fallTo);
    this.#set(this.#isDoubling ? Math.min(fallen, Math.max(this.#answered, callsMin)) : fallen);
    this.#isDoubling = this.#calls === callsMin;
    this.#answered = 0;
  }

  #answers({ calls, organizationId }: { calls: number; organizationId: string }): void {
    this.#excusing = Math.min(this.#excusing + 1, excusesMax * answersPerExcuse);
    if (organizationId !== this.#failing)
      this.#othersAnswered = Math.min(this.#othersAnswered + 1, excusesMax * answersPerExcuse);
    if (calls <= this.#answered) return;
    this.#answered = calls;
    if (this.#slots.callsWaiting() > 0) this.#riseQuickly();
  }

  /** Whether calls of this organization alone fail. Takes an answered call of the others then. */
  #failsAlone({ organizationId }: { organizationId: string }): boolean {
    if (organizationId !== this.#failing) {
      this.#failing = organizationId;
      this.#othersAnswered = 0;
    }
    if (this.#othersAnswered < answersPerExcuse) return false;
    this.#othersAnswered -= 1;
    return true;
  }

  /** Takes one excuse. @returns false if none is left. */
  #excuse(): boolean {
    if (this.#excusing < answersPerExcuse) return false;
    this.#excusing -= answersPerExcuse;
    return true;
  }

  #forgetRise(): void {
    clearTimeout(this.#rise);
    clearTimeout(this.#quickRise);
    this.#rise = undefined;
    this.#quickRise = undefined;
    this.#hasWaited = false;
  }

  #set(calls: number): void {
    this.#calls = Math.min(Math.max(calls, callsMin), callsMax);
    this.#slots.changed(this.#calls);
  }
}

/** A timeout for lack of time is no sign of overload: the wait for a slot may have used the time up. */
function mayBeOverload({ failure, overloaded, outOfTime }: Failure): boolean {
  return overloaded === true || (failure === "timeout" && outOfTime !== true);
}
