const newestShare = 0.1;
// Answers scatter: a call with less than this many times the mean often times out at a provider that works.
const enough = 2;

/** How long one provider usually takes for a page, in this process: the moving average of the calls that were answered. */
export class AnswerTime {
  #meanMs: number | undefined;

  answered(ms: number): void {
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs + (ms - this.#meanMs) * newestShare;
  }

  /** Whether a call with this time-out ends too early to tell whether the provider works. False before the first answer. */
  isMoreThan(timeoutMs: number): boolean {
    return this.#meanMs !== undefined && timeoutMs < this.#meanMs * enough;
  }
}
