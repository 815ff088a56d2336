import type { Redis } from "ioredis";

/**
 * Redis' clock. Deadlines are times of this clock, so that machines whose own clocks differ or jump agree on what is late.
 * Between two readings it advances with the monotonic clock of this process.
 */
export class Clock {
  #offsetMs = Date.now() - performance.now();

  /** Milliseconds since the epoch by Redis' clock, as of the last reading. */
  nowMs(): number {
    return performance.now() + this.#offsetMs;
  }

  /** Reads Redis' clock once. The reading counts as taken midway between request and reply. */
  async read(redis: Redis): Promise<void> {
    const askedMs = performance.now();
    const [seconds, microseconds] = await redis.time();
    const answeredMs = performance.now();
    this.#offsetMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - (askedMs + answeredMs) / 2;
  }
}
