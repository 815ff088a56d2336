import { setTimeout as sleep } from "node:timers/promises";
import { failureKinds, type PageOutcome } from "../provider.ts";
import { minCallMs } from "./attempt.ts";

const backoffMs = 100;
const retriesMax = 10;
const callsPerRetry = 10;

/**
 * Makes one call, and retries it once after a failure that may pass (`retry` in {@link failureKinds}), if the budget and
 * the deadline allow it and the attempt was not cancelled and its caller is there.
 * @param options.deadlineAtMs on the clock of `performance.now()`.
 * @returns the outcome of the last call. A failure that was not retried for lack of time is marked `outOfTime`.
 */
export async function withRetry(
  call: () => Promise<PageOutcome>,
  { budget, deadlineAtMs, signal }: { budget: RetryBudget; deadlineAtMs: number; signal: AbortSignal },
): Promise<PageOutcome> {
  budget.earn();
  const outcome = await call();
  if (!("failure" in outcome) || !failureKinds[outcome.failure].retry || signal.aborted) return outcome;
  if (deadlineAtMs - performance.now() - backoffMs < minCallMs) return { ...outcome, outOfTime: true };
  if (!budget.spend()) return outcome;
  await sleep(backoffMs, undefined, { signal }).catch(() => undefined);
  return signal.aborted ? outcome : call();
}

/**
 * Limits the retries and hedges of one provider to a tenth of its first calls, with a burst of ten. So they repair
 * occasional failures, and cannot double the load on a provider that is down.
 */
export class RetryBudget {
  /** In first calls, of which {@link callsPerRetry} buy a retry. */
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
