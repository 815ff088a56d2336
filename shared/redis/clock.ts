import type { Redis } from "ioredis";

/**
 * Redis' clock, which all processes share: deadlines are times of this clock, so machines whose own clocks differ or
 * jump agree on what is late. Between two readings it runs on by this process' monotonic clock.
 */
export class Clock {
  #offsetMs = Date.now() - performance.now();

  /** Milliseconds since the epoch by Redis' clock, as of the last reading. */
  nowMs(): number {
    return performance.now() + this.#offsetMs;
  }

  /** Reads Redis' clock once. The reading counts as taken midway between question and answer. */
  async read(redis: Redis): Promise<void> {
    const askedMs = performance.now();
    const [seconds, microseconds] = await redis.time();
    const answeredMs = performance.now();
    this.#offsetMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - (askedMs + answeredMs) / 2;
  }
}
