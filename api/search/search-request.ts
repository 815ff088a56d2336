import { hash } from "node:crypto";
import { withTimeout } from "../../shared/concurrency/wait-for.ts";
import type { IdempotencyKey } from "../../shared/queue/search-job.ts";
import type { CallerError } from "../../shared/errors.ts";
import type { Caller } from "../../shared/organizations/organizations.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { type Query, queryFingerprint } from "../../shared/query/query.ts";
import type { Spans } from "../../shared/tracing/spans.ts";
import { engineTimeout } from "../errors.ts";

/** One search request of a caller, over REST or MCP. */
export interface SearchRequest {
  requestId: string;
  caller: Caller;
  query: Query;
  /** Undefined if the caller sent no Idempotency-Key. */
  key: IdempotencyKey | undefined;
  deadline: Deadline;
  /** Aborted when the caller disconnects, or cancels over MCP. */
  disconnected: AbortSignal;
  /** Undefined unless the search is traced. */
  spans: Spans | undefined;
  /** Resolves once the caller has the answer or an error, or once the charge of an answer that it did not take is reversed. */
  ended: Promise<void>;
  end: () => void;
}

/**
 * Builds a search request from what the caller sent. `timeoutMs` is the time from `deadlineStartsAtMs`, on the clock of
 * `performance.now()`, to the deadline.
 */
export function newSearchRequest(
  sent: Pick<SearchRequest, "requestId" | "caller" | "query" | "disconnected"> & {
    deadlineStartsAtMs: number;
    timeoutMs: number;
    idempotencyKey: string | undefined;
    spans?: Spans | undefined;
  },
): SearchRequest {
  const { idempotencyKey, deadlineStartsAtMs, timeoutMs, spans, ...known } = sent;
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const key =
    idempotencyKey === undefined
      ? undefined
      : { hash: sha256(idempotencyKey), fingerprint: queryFingerprint(sent.query) };
  return { ...known, key, deadline: new Deadline(deadlineStartsAtMs, timeoutMs), spans, ended, end };
}

export const sha256 = (text: string) => hash("sha256", text);

/** When a search must be answered, on this process's monotonic clock. */
export class Deadline {
  /** From the arrival of the whole request to its deadline. */
  readonly timeoutMs: number;
  readonly #atMs: number;

  constructor(startsAtMs: number, timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.#atMs = startsAtMs + timeoutMs;
  }

  /** Negative once the deadline has passed. */
  remainingMs(): number {
    return this.#atMs - performance.now();
  }

  /**
   * Waits for one step of a search until shortly after the deadline, however slow Redis or Postgres are.
   * @throws {Error} on the timeout; the step may still have taken effect, or may take effect later.
   */
  limit<T>(step: Promise<T>): Promise<T> {
    return withTimeout(this.remainingMs() + protocolTimes.lateStepMs, step);
  }

  /** The error of a search that was not answered in time. */
  error(): CallerError {
    return engineTimeout(this.timeoutMs);
  }
}
