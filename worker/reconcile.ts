import type { Context } from "../shared/process/context.ts";
import { listUndelivered, reverseCharges } from "../shared/credits/deliveries.ts";
import { settleHolds } from "../shared/credits/holds.ts";
import {
  type ComparedBalance,
  deleteStoredBalance,
  forgetUnlimitedTokens,
  listBalances,
  readStoredBalances,
  storeBalance,
} from "../shared/credits/stored-balances.ts";
import { judgeSuspectCopies, suspectCopy } from "../shared/credits/ledger-gaps.ts";
import type { VersionedBalance } from "../shared/credits/ledger.ts";
import { isLockTimeout } from "../shared/database/transient-errors.ts";
import { listOrganizationIds } from "../shared/organizations/organizations.ts";
import { protocolTimes } from "../shared/protocol-times.ts";

/**
 * The reconciler repairs what was lost: charges whose delivery was never confirmed, and copies of balances that Redis
 * lost or restored from the past. It changes Redis to agree with Postgres, never the reverse, and counts every repair.
 */

const reversalsPerPage = 500;
// For a run of the reversals and of the resync: the steps behind them wait, and the leader's lease is longer.
const partMs = 1_000;
// A run waits 250 ms for each and for the page before it: in all less than the lease of the leader.
const lockedPerRunMax = 3;
const organizationsPerPage = 1_000;
// A drift stays until an operator ends it, so each round logs it again.
const driftsLoggedPerPageMax = 20;

type Repairing = Pick<Context, "database" | "redis" | "metrics" | "log">;

/** Reverses charges that are unconfirmed for five minutes, for about a second. In doubt, the caller keeps the mils. */
export async function reverseUndelivered(context: Repairing): Promise<void> {
  const untilMs = performance.now() + partMs;
  for (let hasMore = true; hasMore && performance.now() < untilMs; ) hasMore = await reverseNextPage(context);
}

/**
 * @param locked the organizations that this run has found locked. Their charges wait for a later run.
 * @returns whether there may be more that can be reversed at once.
 */
async function reverseNextPage(context: Repairing, locked: readonly string[] = []): Promise<boolean> {
  const ageMs = protocolTimes.undeliveredReversalAfterMs;
  const charges = await listUndelivered(context.database, ageMs, reversalsPerPage, locked);
  if (charges.length === 0 || (await reverse(context, charges))) return charges.length === reversalsPerPage;
  // Another transaction has locked an organization or one of its tokens. It must not keep the charges of all others.
  const found: string[] = [];
  for (const [organizationId, own] of Map.groupBy(charges, (charge) => charge.organizationId)) {
    if (locked.length + found.length === lockedPerRunMax) break;
    if (!(await reverse(context, own))) found.push(organizationId);
  }
  if (found.length > 0) await reverseNextPage(context, [...locked, ...found]);
  return false;
}

/** @returns whether the charges were reversed: not if another transaction keeps a row of them locked. */
async function reverse(
  { database, redis, metrics, log }: Repairing,
  charges: readonly { organizationId: string; requestId: string }[],
): Promise<boolean> {
  const reversals = await reverseCharges(database, charges, "undelivered").catch((error: unknown) => {
    if (!isLockTimeout(error)) throw error;
  });
  for (const reversal of reversals ?? []) {
    const { organizationId, requestIds, balance, before } = reversal;
    metrics.reversals.inc({ reason: "undelivered" }, requestIds.length);
    metrics.reversedMils.inc({ reason: "undelivered" }, reversal.mils);
    log.warn({ organizationId, requestIds }, "reversed charges whose delivery was not confirmed");
    await settleHolds(redis, organizationId, balance, [], { before });
  }
  return reversals !== undefined;
}

/**
 * Stores the balances of one page of organizations, behind `after`, whose copies in Redis are missing or older.
 * @returns where the next page begins, or that this was the last one. @throws if Redis did not take them all.
 */
async function storeNextBalances(
  { database, redis, metrics }: Repairing,
  after: string,
): Promise<{ after: string; done: boolean }> {
  const page = await listBalances(database, after, organizationsPerPage);
  await Promise.all(page.map(({ organizationId, balance }) => storeBalance(redis, organizationId, balance)));
  metrics.balancesStored.inc({ why: "redis_restarted" }, page.length);
  return { after: page.at(-1)?.organizationId ?? after, done: page.length < organizationsPerPage };
}

/** How far the comparison of all organizations has come: the last id compared, and the drift found so far. */
export interface ReconcileCursor {
  after: string;
  driftMils: number;
}

/**
 * Compares one page of organizations: the ledger with the balance, and the balance with Redis' copy. The drift found in a
 * whole round becomes the metric. Deletes the spending of tokens without a limit from Redis.
 * @returns where the next page begins.
 */
export async function reconcileNextPage(context: Repairing, cursor: ReconcileCursor): Promise<ReconcileCursor> {
  const { database, redis, metrics } = context;
  const ids = await listOrganizationIds(database, cursor.after, organizationsPerPage);
  await forgetUnlimitedTokens(database, redis, ids);
  // Redis is read before Postgres, so a correct copy can only be older.
  const copies = await readStoredBalances(redis, ids);
  const page = await listBalances(database, cursor.after, organizationsPerPage);
  let driftMils = cursor.driftMils;
  const wrong = page.filter(({ balance, ledgerMils }) => balance.balanceMils !== ledgerMils);
  for (const one of wrong.slice(0, driftsLoggedPerPageMax)) context.log.error(one, "a balance differs from its ledger");
  for (const compared of page) {
    driftMils += Math.abs(compared.balance.balanceMils - compared.ledgerMils);
    driftMils += await repairCopy(context, compared, copies.get(compared.organizationId));
  }
  const last = page.at(-1);
  if (last && page.length === organizationsPerPage) return { after: last.organizationId, driftMils };
  metrics.ledgerDriftMils.set(driftMils);
  return { after: "", driftMils: 0 };
}

/**
 * Replaces an older copy. An impossible one is newer than Postgres, or has the same version and other mils. It stays, as suspect,
 * until Postgres has recorded it. A copy that agrees with the ledger is deleted: then only Postgres' own balance is wrong, which
 * is counted already.
 * @returns the error of an impossible copy in mils.
 */
async function repairCopy(
  { redis, metrics, log }: Repairing,
  { organizationId, balance, ledgerMils }: ComparedBalance,
  copy: VersionedBalance | undefined,
): Promise<number> {
  if (!copy) return 0; // The organization's next search stores it.
  if (copy.version < balance.version) {
    await storeBalance(redis, organizationId, balance);
    // Most of these are settlements that reached Postgres after the copy was read.
    metrics.balancesStored.inc({ why: "older" });
    return 0;
  }
  if (copy.version === balance.version && copy.balanceMils === balance.balanceMils) return 0;
  if (copy.version === balance.version && copy.balanceMils === ledgerMils) {
    await deleteStoredBalance(redis, organizationId);
    metrics.balancesStored.inc({ why: "impossible" });
    return 0;
  }
  await suspectCopy(redis, organizationId, copy.version, balance);
  log.error({ organizationId, copy, balance }, "Redis has an impossible copy of a balance");
  return Math.abs(copy.balanceMils - balance.balanceMils);
}

/**
 * Has Postgres record the suspect copies that came after entries which it lost, and deletes these copies. It runs before the
 * next comparison, so settlements that were on their way when a copy became suspect have corrected what it is compared with.
 */
export async function recordGaps({ database, redis, metrics, log }: Repairing): Promise<void> {
  for (const { deleted, ...gap } of await judgeSuspectCopies(database, redis)) {
    if (deleted) metrics.balancesStored.inc({ why: "impossible" });
    log.error(gap, "Postgres lost entries of the ledger: recorded a gap");
  }
}

/**
 * The full resync: it stores the balance of every organization in Redis. Any copy may be old after a while without a leader,
 * or when Redis restarted from an old state. Each run of maintenance does a part of about a second and then its other steps.
 */
export class Resync {
  #stored = { after: "", done: false };

  beginAnew(): void {
    this.#stored = { after: "", done: false };
  }

  /** @param leads renews the lease and says whether this worker still holds it. Called before each page. */
  async continue(context: Repairing, leads: () => Promise<boolean>): Promise<void> {
    const untilMs = performance.now() + partMs;
    while (!this.#stored.done && performance.now() < untilMs && (await leads())) {
      const before = this.#stored;
      const stored = await storeNextBalances(context, before.after);
      if (before !== this.#stored) continue; // Redis has restarted meanwhile.
      this.#stored = stored;
      if (stored.done) context.log.info("stored the balances of all organizations in Redis");
    }
  }
}
