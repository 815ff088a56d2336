import type { Redis } from "ioredis";
import { unavailable } from "../../errors.ts";

/** Counts requests in Redis, for all API processes together. A window begins with its first request. */
export class CountedWindow {
  readonly #redis: Redis;
  readonly #limits: { keyPrefix: string; requestsMax: number; windowSeconds: number };

  constructor(redis: Redis, limits: { keyPrefix: string; requestsMax: number; windowSeconds: number }) {
    this.#redis = redis;
    this.#limits = limits;
  }

  /**
   * Counts one request of this name. @returns undefined if it is within the limit, otherwise the milliseconds until the window
   * ends. @throws {CallerError} `unavailable` without Redis.
   */
  async take(name: string): Promise<number | undefined> {
    const { keyPrefix, requestsMax, windowSeconds } = this.#limits;
    const key = keyPrefix + name;
    const replies = await this.#redis
      .multi()
      .incr(key)
      .expire(key, windowSeconds, "NX")
      .pttl(key)
      .exec()
      .catch(() => undefined);
    const [failed, requests] = replies?.[0] ?? [true];
    if (failed) throw unavailable("redis_unreachable");
    return Number(requests) <= requestsMax ? undefined : Number(replies?.[2]?.[1]);
  }
}
