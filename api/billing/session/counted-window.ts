import type { Redis } from "ioredis";
import { execPipeline } from "../../../shared/redis/pipeline.ts";
import { orRedisUnavailable } from "../../datastore-unavailable.ts";

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
    const counting = this.#redis.multi().incr(key).expire(key, windowSeconds, "NX").pttl(key);
    const [requests, , leftMs] = await orRedisUnavailable(execPipeline(counting));
    return Number(requests) <= requestsMax ? undefined : Number(leftMs);
  }
}
