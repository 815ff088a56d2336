import { clearOldSignIns } from "../shared/audit/audit.ts";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { defineHoldIndexScripts, readOpenHolds } from "../shared/credits/hold-deadlines.ts";
import { deleteExpiredKeys } from "../shared/credits/paid-keys.ts";
import { clearOldAnswers } from "../shared/credits/stored-answers.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeStaleHeartbeats } from "../shared/queue/worker-heartbeats.ts";
import { keepSearchLog } from "../shared/search-log/keep-search-log.ts";
import { noticeLowBalances } from "../shared/webhooks/low-balance.ts";
import { deleteOldEvents } from "../shared/webhooks/webhook-events.ts";
import { acquireLeadership, resignLeadership } from "./leadership.ts";
import { reconcileNextPage, reverseUndelivered, type Rotation } from "./reconcile.ts";
import { continueResync } from "./resync.ts";
import { sweepHolds } from "./sweep-holds.ts";

const slowStepsEvery = 5; // runs
const expiredKeysPerRunMax = 5_000;
const oldSignInsPerRunMax = 1_000;
const oldEventsPerRunMax = 1_000;
const thresholdsPerRun = 5_000;

type Maintaining = Context & { settlement: Settlement };

/**
 * Sweeps holds and reconciles about once a second, in the one worker that leads. The lease is renewed before each step; a
 * worker that has lost it leaves the other steps to the next leader.
 */
export function startMaintenance(context: Maintaining, workerId: string): void {
  const { config, database, redis, clock, metrics, log, shutdown } = context;
  defineHoldIndexScripts(redis);
  const measured = [metrics.holdsOpen, metrics.heldMils, metrics.ledgerDriftMils];
  let rotation: Rotation = { after: "", driftMils: 0 };
  let thresholdsAfter = "";
  let runs = 0;

  const leads = async () => {
    if (await acquireLeadership(redis, workerId)) return true;
    // Only the leader exports these gauges: an old value of another worker would be added to the leader's.
    for (const gauge of measured) gauge.remove();
    return false;
  };
  const steps = [
    () => continueResync(context, leads),
    () => sweepHolds(context),
    async () => {
      const seen = await readOpenHolds(redis);
      metrics.holdsOpen.set(seen.open);
      metrics.heldMils.set(seen.heldMils);
    },
    async () => {
      rotation = await reconcileNextPage(context, rotation);
    },
  ];
  const slowSteps = [
    () => removeStaleHeartbeats(redis, clock.nowMs()),
    () => reverseUndelivered(context),
    () => deleteExpiredKeys(database, expiredKeysPerRunMax),
    async () => {
      if (await clearOldAnswers(database)) log.info("emptied the table of the answers that have expired");
    },
    () => clearOldSignIns(database, oldSignInsPerRunMax),
    async () => {
      const days = await keepSearchLog(database, config.SEARCH_LOG_DAYS);
      if (days > 0) log.info({ days }, "removed old days of the search log");
    },
    () => deleteOldEvents(database, oldEventsPerRunMax),
    async () => {
      if (config.WEBHOOK_TARGETS === "none") return;
      const page = { after: thresholdsAfter, limit: thresholdsPerRun };
      thresholdsAfter = await noticeLowBalances(context, page);
    },
  ];
  const run = async () => {
    const due = runs % slowStepsEvery === 0 ? [...steps, ...slowSteps] : steps;
    for (const step of due) {
      if (!(await leads())) return;
      await step();
    }
    runs += 1;
  };
  shutdown.register("leadership", async () => {
    // A lease that stays in an unreachable Redis expires.
    await resignLeadership(redis, workerId).catch((error) => log.warn({ err: error }, "the lease was not given back"));
  });
  const pauseMs = protocolTimes.maintenanceIntervalMs;
  runPeriodically({ name: "caretaker", pauseMs, run, measured, log, metrics, shutdown });
}
