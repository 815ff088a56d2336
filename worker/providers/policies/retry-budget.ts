const retriesMax = 10;
const callsPerRetry = 10;

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
