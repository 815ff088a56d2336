import type { Redis } from "ioredis";
import { readIdempotencyState } from "../../shared/credits/holds.ts";
import { nameOfKey, readPaidKeys } from "../../shared/credits/stored-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import { timeOfId } from "../../shared/ids.ts";
import { orPostgresUnavailable, orRedisUnavailable } from "../datastore-unavailable.ts";
import type { Refunds } from "./refunds.ts";
import { newSearchRequest, type SearchRequest, sha256 } from "./search-request.ts";

/**
 * What the cancellation of a key found. `charged`: the answer was faster, and its search is named. `cancelled`: the search under the
 * key has ended without a charge. `not_running`: the key has neither run nor paid; its search may still be on its way.
 */
export type Cancellation = { outcome: "charged"; requestId: string } | { outcome: "cancelled" | "not_running" };

export type CancelSearch = (
  sent: Pick<SearchRequest, "caller" | "query"> & { idempotencyKey: string; timeoutMs: number },
) => Promise<Cancellation>;

/**
 * Cancels the search that runs under an Idempotency-Key. Postgres decides it like any other end: a cancelled search is refunded, so
 * no caller ever gets its answer, and its provider calls count as unpaid. A charge stands, and the key returns its answer. After a crash
 * or a lost reply it can be repeated.
 * @returns a function that throws {@link CallerError} `unavailable` without Redis or Postgres: whether the search ended is then unknown.
 */
export function openCancelSearch(parts: { redis: Redis; database: Database; refunds: Refunds }): CancelSearch {
  const { redis, database, refunds } = parts;
  return async (sent) => {
    const key = { organizationId: sent.caller.organizationId, hash: sha256(sent.idempotencyKey) };
    const first = await orRedisUnavailable(readIdempotencyState(redis, key.organizationId, key.hash));
    if (first.outcome === "running") {
      const { requestId } = first;
      const ageMs = Date.now() - timeOfId(requestId).getTime();
      const times = { deadlineStartsAtMs: performance.now() - ageMs, disconnected: AbortSignal.abort() };
      const decision = await orPostgresUnavailable(
        refunds.withdraw(newSearchRequest({ ...sent, ...times, requestId })),
      );
      if (decision.kind === "charge") return { outcome: "charged", requestId };
    }
    const paid = (await orPostgresUnavailable(readPaidKeys(database, [key]))).get(nameOfKey(key));
    if (paid) return { outcome: "charged", requestId: paid.requestId };
    return { outcome: first.outcome === "gone" ? "not_running" : "cancelled" };
  };
}
