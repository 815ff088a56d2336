import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { defineHoldIndexScripts, readOpenHolds } from "../shared/credits/hold-deadlines.ts";
import { deleteExpiredKeys } from "../shared/credits/paid-keys.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeStaleHeartbeats } from "../shared/queue/worker-heartbeats.ts";
import { acquireLeadership, readRedisRunId, resignLeadership } from "./leadership.ts";
import { reconcileNextPage, reverseUndelivered, type Rotation, storeAllBalances } from "./reconcile.ts";
import { sweepHolds } from "./sweep-holds.ts";

const slowStepsEvery = 5; // runs
const expiredKeysPerRunMax = 5_000;

type Maintaining = Context & { settlement: Settlement };

/**
 * Sweeps holds and reconciles about once a second, in the one worker that leads. A new leader begins with storing all
 * balances, and so does the leader when Redis was restarted.
 */
export function startMaintenance(context: Maintaining, workerId: string): void {
  const { database, redis, clock, metrics, log, shutdown } = context;
  defineHoldIndexScripts(redis);
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
    // Without a leader for a while, or with a Redis that was restarted from an old state, any copy may be old.
    if (runId !== syncedRunId) await storeAllBalances(context);
    syncedRunId = runId;

    await sweepHolds(context);
    const seen = await readOpenHolds(redis);
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
