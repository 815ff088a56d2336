import { listLatelyActive } from "../shared/organizations/organizations.ts";
import { startRounds } from "../shared/rounds.ts";
import { forgetSilentWorkers } from "../shared/workforce.ts";
import type { WorkerContext } from "./context.ts";
import { forgetExpiredKeys, listIds, type Rotation, reverseUndelivered, rotate, storeAllPairs } from "./reconcile.ts";
import { sweepHolds } from "./sweep-holds.ts";

/**
 * Sweeping and reconciling, done by one worker at a time: whoever holds the lease. The lease only saves work; two
 * caretakers at once do no harm.
 */

const leaseKey = "caretaker";
const leaseMs = 3_000;
const roundMs = 1_000;
const slowEvery = 5; // rounds
const latelySeconds = 15 * 60;

export function startCaretaker(context: WorkerContext, workerId: string): void {
  const { redis, metrics, log, closing } = context;
  const measured = [metrics.holdsOpen, metrics.heldMils, metrics.ledgerDriftMils];
  let rotation: Rotation = { after: "", driftMils: 0 };
  let rounds = 0;
  let knownRunId = "";

  const run = async () => {
    if (!(await holdLease(context, workerId))) {
      // Only one worker tells these; a stale figure of another would be added to it.
      for (const gauge of measured) gauge.remove();
      knownRunId = "";
      return;
    }
    const runId = await readRunId(context);
    if (runId !== knownRunId) await lookAtEverybody(context);
    knownRunId = runId;

    const seen = await sweepHolds(context, await listLatelyActive(context.database, latelySeconds));
    metrics.holdsOpen.set(seen.open);
    metrics.heldMils.set(seen.heldMils);
    rotation = await rotate(context, rotation);
    rounds += 1;
    if (rounds % slowEvery !== 1) return;
    await forgetSilentWorkers(redis, context.clock.nowMs());
    await reverseUndelivered(context);
    await forgetExpiredKeys(context);
  };
  closing.push("caretaker's lease", async () => {
    if ((await redis.get(leaseKey)) === workerId) await redis.del(leaseKey);
  });
  startRounds({ name: "caretaker", pauseMs: roundMs, run, measured, log, metrics, closing });
}

/**
 * Nobody may have looked for a while, or Redis is another one or back in the past: then any organization can have an old
 * balance or holds of searches that are long over, also one that nobody has used lately.
 */
async function lookAtEverybody(context: WorkerContext): Promise<void> {
  await storeAllPairs(context);
  for (let ids = await listIds(context, ""); ids.length > 0; ids = await listIds(context, ids.at(-1) ?? ""))
    await sweepHolds(context, ids);
}

async function holdLease({ redis }: WorkerContext, workerId: string): Promise<boolean> {
  if (await redis.set(leaseKey, workerId, "PX", leaseMs, "NX")) return true;
  if ((await redis.get(leaseKey)) !== workerId) return false;
  await redis.pexpire(leaseKey, leaseMs);
  return true;
}

/** Which run of Redis this is: another one may have forgotten, or be back in the past. */
async function readRunId({ redis }: WorkerContext): Promise<string> {
  return /^run_id:(\w+)/m.exec(await redis.info("server"))?.[1] ?? "";
}
