import type { Redis } from "ioredis";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { execPipeline } from "../../../shared/redis/connect.ts";
import { orRedisUnavailable } from "../../datastore-unavailable.ts";
import { onlyTokenOf } from "./sessions.ts";

/** Counts requests in Redis, for all API processes together. A window begins with its first request. */
export class CountedWindow {
  readonly #redis: Redis;
  readonly #limits: { keyPrefix: string; requestsMax: number; windowSeconds: number };

  constructor(redis: Redis, limits: { keyPrefix: string; requestsMax: number; windowSeconds: number }) {
    this.#redis = redis;
    this.#limits = limits;
  }

  /**
   * Counts one request under a name. @returns undefined within the limit, otherwise the milliseconds until the window ends.
   * @throws {CallerError} `unavailable` without Redis.
   */
  async take(name: string): Promise<number | undefined> {
    const { keyPrefix, requestsMax, windowSeconds } = this.#limits;
    const key = keyPrefix + name;
    const counting = this.#redis.multi().incr(key).expire(key, windowSeconds, "NX").pttl(key);
    const [requests, , leftMs] = await orRedisUnavailable(execPipeline(counting));
    return Number(requests) <= requestsMax ? undefined : Number(leftMs);
  }
}

/** What a window counts a signed-in caller by. Sessions that only search share another one: they must not lock the payer out. */
export const windowNameOf = (caller: Caller) =>
  onlyTokenOf(caller) ? `${caller.organizationId}:search` : caller.organizationId;

const pageWindowSeconds = 60;

/** Of page views, exports, forms and the like. */
const ofPages = { keyPrefix: "pages:", requestsMax: 60 };
/** Of suggestions: a person who types asks several times a second. */
export const ofSuggestions = { keyPrefix: "pages:suggestions:", requestsMax: 300 };

/**
 * Limits the page requests of an organization: sign-ins, views, exports, forms, and streams that open. It is separate from the rate
 * window of REST and MCP, so that a program that uses up its window does not lock out the person who pays for it.
 */
export class PageWindow {
  readonly #window: CountedWindow;
  readonly #requestsMax: number;

  constructor(redis: Redis, limits = ofPages) {
    this.#window = new CountedWindow(redis, { ...limits, windowSeconds: pageWindowSeconds });
    this.#requestsMax = limits.requestsMax;
  }

  /** Counts one request. @throws {CallerError} `rate_limited` beyond the limit, `unavailable` without Redis. */
  async take(caller: Caller): Promise<void> {
    const retryAfterMs = await this.#window.take(windowNameOf(caller));
    if (retryAfterMs === undefined) return;
    throw new CallerError("rate_limited", {
      reason: "pages",
      limit: this.#requestsMax,
      windowSeconds: pageWindowSeconds,
      retryAfterMs,
    });
  }
}
