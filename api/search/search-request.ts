import { withTimeout } from "../../shared/concurrency/with-timeout.ts";
import type { Config } from "../../shared/config.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { Query } from "../../shared/query/query.ts";

/** One search as a caller asked for it, through whichever door. */
export interface SearchRequest {
  requestId: string;
  /** By this process' monotonic clock, `performance.now()`. */
  receivedAtMs: number;
  caller: Caller;
  query: Query;
  idempotencyKey: string | undefined;
  /** Aborted when the caller hangs up. */
  disconnected: AbortSignal;
}

/** Milliseconds until the search's deadline. */
export function remainingMs({ config }: { config: Config }, call: SearchRequest): number {
  return call.receivedAtMs + config.SEARCH_DEADLINE_MS - performance.now();
}

/**
 * Waits for one step of a search, but not for long behind its deadline, whatever Redis or Postgres are up to.
 * @throws {Error} where it takes longer; whether it was done is unknown then.
 */
export function withinDeadline<T>(context: { config: Config }, call: SearchRequest, step: Promise<T>): Promise<T> {
  return withTimeout(Math.max(0, remainingMs(context, call)) + protocolTimes.lateStepMs, step);
}
