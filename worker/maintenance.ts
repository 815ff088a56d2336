import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { deleteExpiredKeys } from "../shared/credits/paid-keys.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { listOrganizationIds, listRecentlyActive } from "../shared/organizations/organizations.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeStaleHeartbeats } from "../shared/queue/worker-heartbeats.ts";
import { acquireLeadership, readRedisRunId, resignLeadership } from "./leadership.ts";
import { reconcileNextPage, reverseUndelivered, type Rotation, storeAllBalances } from "./reconcile.ts";
import { sweepHolds } from "./sweep-holds.ts";

const slowStepsEvery = 5; // runs
const recentlyActiveSeconds = 15 * 60;
const organizationsPerPage = 1_000;
const expiredKeysPerRunMax = 5_000;

type Maintaining = Context & { settlement: Settlement };

/**
 * Sweeps holds and reconciles about once a second, in the one worker that leads. A new leader begins with a full resync,
 * and so does the leader when Redis was restarted.
 */
export function startMaintenance(context: Maintaining, workerId: string): void {
  const { database, redis, clock, metrics, log, shutdown } = context;
  const measured = [metrics.holdsOpen, metrics.heldMils, metrics.ledgerDriftMils];
  let rotation: Rotation = { after: "", driftMils: 0 };
  let runs = 0;
  let syncedRunId = "";

  const run = async () => {
    if (!(await acquireLeadership(redis, workerId))) {
      // Only the leader exports these gauges: an old value of another worker would be added to the leader's.
      for (const gauge of measured) gauge.remove();
      syncedRunId = "";
      return;
    }
    const runId = await readRedisRunId(redis);
    if (runId !== syncedRunId) await fullResync(context);
    syncedRunId = runId;

    const seen = await sweepHolds(context, await listRecentlyActive(database, recentlyActiveSeconds));
    metrics.holdsOpen.set(seen.open);
    metrics.heldMils.set(seen.heldMils);
    rotation = await reconcileNextPage(context, rotation);
    runs += 1;
    if (runs % slowStepsEvery !== 1) return;
    await removeStaleHeartbeats(redis, clock.nowMs());
    await reverseUndelivered(context);
    await deleteExpiredKeys(database, expiredKeysPerRunMax);
  };
  shutdown.register("leadership", () => resignLeadership(redis, workerId));
  const pauseMs = protocolTimes.maintenanceIntervalMs;
  runPeriodically({ name: "caretaker", pauseMs, run, measured, log, metrics, shutdown });
}

/**
 * Stores all balances and sweeps all organizations, not only the recently active ones. Without a leader for a while, or
 * with a Redis that was restarted from an old state, any organization may have an old balance or overdue holds.
 */
async function fullResync(context: Maintaining): Promise<void> {
  await storeAllBalances(context);
  for (let after: string | undefined = ""; after !== undefined; ) {
    const ids = await listOrganizationIds(context.database, after, organizationsPerPage);
    await sweepHolds(context, ids);
    after = ids.at(-1);
  }
}
