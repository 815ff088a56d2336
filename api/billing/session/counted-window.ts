import type { Redis } from "ioredis";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { execPipeline } from "../../../shared/redis/connect.ts";
import { orRedisUnavailable } from "../../datastore-unavailable.ts";
import { onlyTokenOf } from "./sessions.ts";

/** A limit of requests in Redis, for all API processes together. A window begins with its first request. */
interface CountedWindow {
  keyPrefix: string;
  requestsMax: number;
  windowSeconds: number;
}

/**
 * Counts one request under a name. @returns undefined within the limit, otherwise the milliseconds until the window ends.
 * @throws {CallerError} `unavailable` without Redis.
 */
export async function countRequest(redis: Redis, window: CountedWindow, name: string): Promise<number | undefined> {
  const key = window.keyPrefix + name;
  // LT sets the end of a new window, and of one that would last longer than a window: then the clock of Redis was set back.
  const counting = redis.multi().incr(key).expire(key, window.windowSeconds, "LT").pttl(key);
  const [requests, , leftMs] = await orRedisUnavailable(execPipeline(counting));
  return Number(requests) <= window.requestsMax ? undefined : Number(leftMs);
}

/** What a window counts a signed-in caller by. Sessions that only search share another one: they must not lock the payer out. */
export const windowNameOf = (caller: Caller) =>
  onlyTokenOf(caller) ? `${caller.organizationId}:search` : caller.organizationId;

/** Of page views, exports, forms and the like. */
const ofPages = { keyPrefix: "pages:", requestsMax: 60, windowSeconds: 60 };
/** Of suggestions: a person who types asks several times a second. */
export const ofSuggestions = { keyPrefix: "pages:suggestions:", requestsMax: 300, windowSeconds: 60 };

/**
 * Counts one page request of an organization: a sign-in, view, export or form, or a stream that opens. Their window is separate from
 * the rate window of REST and MCP, so that a program that uses up its window does not lock out the person who pays for it.
 * @throws {CallerError} `rate_limited` beyond the limit, `unavailable` without Redis.
 */
export async function takePageRequest(redis: Redis, caller: Caller, window: CountedWindow = ofPages): Promise<void> {
  const retryAfterMs = await countRequest(redis, window, windowNameOf(caller));
  if (retryAfterMs === undefined) return;
  const { requestsMax: limit, windowSeconds } = window;
  throw new CallerError("rate_limited", { reason: "pages", limit, windowSeconds, retryAfterMs });
}
