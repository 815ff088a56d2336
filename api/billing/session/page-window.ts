import type { Redis } from "ioredis";
import { CallerError } from "../../../shared/errors.ts";
import type { Caller } from "../../../shared/organizations/organizations.ts";
import { CountedWindow } from "./counted-window.ts";

const requestsMax = 60;
const windowSeconds = 60;

/**
 * Limits what the billing pages of an organization cost: sign-ins, views, exports, streams that open, and payments that
 * begin. It is apart from the rate window of REST and MCP, so that a program which uses up its window does not lock out who
 * pays for it.
 */
export class PageWindow {
  readonly #window: CountedWindow;

  constructor(redis: Redis) {
    this.#window = new CountedWindow(redis, { keyPrefix: "pages:", requestsMax, windowSeconds });
  }

  /** Counts one request. @throws {CallerError} `rate_limited` beyond the limit, `unavailable` without Redis. */
  async take({ organizationId }: Caller): Promise<void> {
    const retryAfterMs = await this.#window.take(organizationId);
    if (retryAfterMs === undefined) return;
    throw new CallerError("rate_limited", { reason: "pages", limit: requestsMax, windowSeconds, retryAfterMs });
  }
}
