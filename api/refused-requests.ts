import { LRUCache } from "lru-cache";
import type { Caller } from "../shared/organizations/organizations.ts";
import { RateLimited } from "./errors.ts";

// Requests that get nothing of the plan's rate window may be this many times as many as its requests.
const windowFactor = 10;
const organizationsMax = 10_000;

interface Window {
  endsAtMs: number;
  requests: number;
}

/**
 * A window per organization, in this process, for requests that take nothing of the plan's rate window: refused ones, replays,
 * and MCP messages that call no tool. Each costs work, so a caller that goes on is refused without any in Redis or Postgres.
 */
export class RefusedRequests {
  readonly #windows = new LRUCache<string, Window>({ max: organizationsMax });

  /** @throws {RateLimited} if the organization's window is full. */
  check({ organizationId, plan }: Caller): void {
    const { windowLimit, windowSeconds } = plan;
    const window = this.#windows.get(organizationId);
    const limit = windowFactor * windowLimit;
    const leftMs = window ? Math.ceil(window.endsAtMs - performance.now()) : 0;
    if (!window || window.requests < limit || leftMs <= 0) return;
    throw RateLimited.byBound({ reason: "refused", retryAfterMs: leftMs, limit, windowSeconds }, plan);
  }

  /** Counts a request. The first one begins a window, which is as long as that of the plan. */
  count({ organizationId, plan }: Caller): void {
    const nowMs = performance.now();
    const window = this.#windows.get(organizationId);
    if (window && window.endsAtMs > nowMs) window.requests += 1;
    else this.#windows.set(organizationId, { endsAtMs: nowMs + plan.windowSeconds * 1_000, requests: 1 });
  }
}
