const atHand = 10;
const callsPerRetry = 10;

/**
 * How many second calls a provider may be sent: one for ten first calls, and ten at hand. So retries and hedges repair what
 * goes wrong now and then, and cannot double the load on a provider that is down.
 */
export class RetryBudget {
  #earned = atHand * callsPerRetry;

  /** A first call was sent. */
  earn(): void {
    this.#earned = Math.min(this.#earned + 1, atHand * callsPerRetry);
  }

  /** Takes a second call, where one is left. */
  spend(): boolean {
    if (this.#earned < callsPerRetry) return false;
    this.#earned -= callsPerRetry;
    return true;
  }
}
