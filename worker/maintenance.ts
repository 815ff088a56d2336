import { listRecentlyActive } from "../shared/organizations/organizations.ts";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { removeStaleHeartbeats } from "../shared/queue/worker-heartbeats.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import type { WorkerContext } from "./context.ts";
import {
  forgetExpiredKeys,
  listIds,
  type Rotation,
  reverseUndelivered,
  reconcileNextPage,
  storeAllBalances,
} from "./reconcile.ts";
import { sweepHolds } from "./sweep-holds.ts";

/**
 * Sweeping and reconciling, done by one worker at a time: whoever holds the lease. The lease only saves work; two
 * caretakers at once do no harm.
 */

const leaseKey = "caretaker";
const slowEvery = 5; // rounds
const latelySeconds = 15 * 60;

export function startMaintenance(context: WorkerContext, workerId: string): void {
  const { redis, metrics, log, shutdown } = context;
  const measured = [metrics.holdsOpen, metrics.heldMils, metrics.ledgerDriftMils];
  let rotation: Rotation = { after: "", driftMils: 0 };
  let rounds = 0;
  let knownRunId = "";

  const run = async () => {
    if (!(await acquireLeadership(context, workerId))) {
      // Only one worker tells these; a stale figure of another would be added to it.
      for (const gauge of measured) gauge.remove();
      knownRunId = "";
      return;
    }
    const runId = await readRunId(context);
    if (runId !== knownRunId) await fullResync(context);
    knownRunId = runId;

    const seen = await sweepHolds(context, await listRecentlyActive(context.database, latelySeconds));
    metrics.holdsOpen.set(seen.open);
    metrics.heldMils.set(seen.heldMils);
    rotation = await reconcileNextPage(context, rotation);
    rounds += 1;
    if (rounds % slowEvery !== 1) return;
    await removeStaleHeartbeats(redis, context.clock.nowMs());
    await reverseUndelivered(context);
    await forgetExpiredKeys(context);
  };
  shutdown.register("caretaker's lease", async () => {
    if ((await redis.get(leaseKey)) === workerId) await redis.del(leaseKey);
  });
  runPeriodically({
    name: "caretaker",
    pauseMs: protocolTimes.maintenanceIntervalMs,
    run,
    measured,
    log,
    metrics,
    shutdown,
  });
}

/**
 * Nobody may have looked for a while, or Redis is another one or back in the past: then any organization can have an old
 * balance or holds of searches that are long over, also one that nobody has used lately.
 */
async function fullResync(context: WorkerContext): Promise<void> {
  await storeAllBalances(context);
  for (let ids = await listIds(context, ""); ids.length > 0; ids = await listIds(context, ids.at(-1) ?? ""))
    await sweepHolds(context, ids);
}

async function acquireLeadership({ redis }: WorkerContext, workerId: string): Promise<boolean> {
  if (await redis.set(leaseKey, workerId, "PX", protocolTimes.leaderLeaseMs, "NX")) return true;
  if ((await redis.get(leaseKey)) !== workerId) return false;
  await redis.pexpire(leaseKey, protocolTimes.leaderLeaseMs);
  return true;
}

/** Which run of Redis this is: another one may have forgotten, or be back in the past. */
async function readRunId({ redis }: WorkerContext): Promise<string> {
  return /^run_id:(\w+)/m.exec(await redis.info("server"))?.[1] ?? "";
}
