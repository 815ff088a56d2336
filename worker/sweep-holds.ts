import type { Context } from "../shared/process/context.ts";
import { findOverdueHolds, type IndexedHold } from "../shared/credits/open-holds.ts";
import { settleHolds } from "../shared/credits/holds.ts";
import type { IdempotencyKey } from "../shared/queue/search-job.ts";
import { UnknownOrganization } from "../shared/credits/decide-batches.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { suspectCopy } from "../shared/credits/ledger-gaps.ts";
import { deleteStoredBalance, readStoredBalances } from "../shared/credits/stored-balances.ts";
import { protocolTimes } from "../shared/protocol-times.ts";

const holdsPerPage = 500;
const pagesPerRunMax = 20;
// A page with a locked organization takes this long, which is less than the lease of the leader.
const refundRetryMs = 1_000;

type Sweeping = Pick<Context, "config" | "redis" | "metrics" | "log"> & { settlement: Settlement };

/**
 * Ends the holds that are open 2 s after their deadline, because a process died or a message was lost. Several workers
 * may sweep at once, since Postgres decides each search once.
 * @throws the first error of a hold that could not be ended. The further pages leave out the holds of its organization, which may be
 *   locked, and end all others.
 */
export async function sweepHolds(context: Sweeping): Promise<void> {
  const errors = new Map<string, unknown>();
  let left = 0;
  for (let page = 0; page < pagesPerRunMax; page += 1) {
    const range = { skip: left, limit: holdsPerPage };
    const overdue = await findOverdueHolds(context.redis, { graceMs: protocolTimes.sweepGraceMs, ...range });
    const due = overdue.filter(({ organizationId }) => !errors.has(organizationId));
    left += overdue.length - due.length;
    const end = (hold: IndexedHold) =>
      refund(context, hold).catch((error: unknown) => {
        errors.set(hold.organizationId, error);
        left += 1;
      });
    await Promise.all(due.map(end));
    if (overdue.length < holdsPerPage) break;
  }
  for (const error of errors.values()) throw error;
}

/** Refunds the search of a hold. If it was charged after all, the charge stays and only the hold ends. */
async function refund(context: Sweeping, hold: IndexedHold): Promise<void> {
  const { config, settlement, metrics, log } = context;
  const { organizationId, requestId, keyHash } = hold;
  // The key's record is only freed here, never filled, so the fingerprint of its query is not needed.
  const key = keyHash ? { hash: keyHash, fingerprint: "" } : undefined;
  const timeoutMs = config.SEARCH_DEADLINE_MS;
  const request = { organizationId, requestId, key, wanted: "refund", reason: "swept" } as const;
  const decision = await settlement.decide(request, refundRetryMs).catch((error: unknown) => {
    if (error instanceof UnknownOrganization) return undefined;
    throw error;
  });
  if (decision) {
    const outcome = { kind: "failure", code: "engine_timeout", details: { timeoutMs } } as const;
    await settlement.publish({ request, decision, outcome, ifCharged: "end_hold" }, refundRetryMs);
  } else await drop(context, hold, key);
  metrics.holdsSwept.inc();
  const what = decision ? "swept an overdue hold" : "dropped an overdue hold of an organization that does not exist";
  log.warn({ requestId, organizationId }, what);
}

/**
 * Drops a hold without a decision, because Postgres was restored from a time before the organization. If a later restore
 * brings the organization back, its balance is read again, and the search was never charged.
 */
async function drop({ redis }: Sweeping, { organizationId, requestId }: IndexedHold, key?: IdempotencyKey) {
  const none = { balanceMils: 0, version: 0 };
  const copy = (await readStoredBalances(redis, [organizationId])).get(organizationId);
  // The reconciler records the copy as a gap, and deletes it. One of version 0 was made below.
  const isSuspect = copy !== undefined && copy.version > 0;
  if (isSuspect) await suspectCopy(redis, organizationId, copy.version, none);
  await settleHolds(redis, organizationId, none, [{ requestId, key }]);
  if (!isSuspect) await deleteStoredBalance(redis, organizationId);
}
