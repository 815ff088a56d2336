import type { Redis } from "ioredis";
import type { Gauge } from "prom-client";
import { clearOldSignIns } from "../shared/audit/audit.ts";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/process/context.ts";
import { countOpenGaps } from "../shared/credits/ledger-gaps.ts";
import { readOpenHolds } from "../shared/credits/open-holds.ts";
import { clearKeptAnswers } from "../shared/credits/kept-answers.ts";
import { clearOldAnswers } from "../shared/credits/stored-answers.ts";
import { clearOldRefunds } from "../shared/credits/ledger.ts";
import { readOldestSnapshot } from "../shared/database/oldest-snapshot.ts";
import type { Settlement } from "../shared/credits/settlement.ts";
import { openThrottles } from "../shared/process/log-trouble.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { Script } from "../shared/redis/script.ts";
import { boundStallCheck, removeOldFailedSearches } from "../shared/queue/search-queue.ts";
import { removeStaleHeartbeats } from "../shared/queue/worker-heartbeats.ts";
import { clearOldRefused } from "../shared/search-log/refused-searches.ts";
import { rotateDays } from "../shared/search-log/search-log.ts";
import { noticeLowBalances } from "../shared/webhooks/low-balance.ts";
import { deleteOldEvents } from "../shared/webhooks/webhook-events.ts";
import { lowerTurns } from "./lower-turns.ts";
import type { PostgresCheck } from "./postgres-check.ts";
import { type ReconcileCursor, reconcileNextPage, recordGaps, Resync, reverseUndelivered } from "./reconcile.ts";
import { sweepHolds } from "./sweep-holds.ts";

const slowStepsEvery = 5; // runs
const oldSignInsPerRunMax = 1_000;
const oldEventsPerRunMax = 1_000;
const oldRefusedPerRunMax = 5_000;
const oldAnswersPerRunMax = 5_000;
const keptCountsPerRun = 20_000;
const oldRefundsPerPage = 5_000;
const oldRefundPagesPerRunMax = 10;
const thresholdsPerRun = 5_000;
const logFailureAfterMs = 5_000;
// Short steps share a renewal of the lease.
const renewAfterMs = 100;
// With few organizations a page is a whole round, and most of the work of an idle worker.
const reconcileRoundMsMin = 5_000;

type Maintaining = Context & { settlement: Settlement };

/** A part of a run of maintenance, and the gauges that it sets. */
interface Step {
  name: string;
  work: () => Promise<unknown>;
  gauges?: readonly Gauge[];
}

/**
 * Sweeps holds and reconciles about once a second, in the one worker that leads. A worker that has lost its lease leaves the
 * other steps to the next leader. A step that fails is counted and logged, and the steps after it run.
 */
export function startMaintenance(
  context: Maintaining,
  workerId: string,
  { isCutOff }: Pick<PostgresCheck, "isCutOff">,
): void {
  const { redis, metrics, log, shutdown } = context;
  // Only the leader exports these gauges: an old value of another worker would be added to the leader's.
  const measured = [
    metrics.holdsOpen,
    metrics.heldMils,
    metrics.ledgerDriftMils,
    metrics.ledgerGapsOpen,
    metrics.oldestSnapshotAge,
  ];
  const resync = new Resync();
  redis.on("ready", () => resync.beginAnew()); // It may have restarted.
  let ledAtMs = Number.NEGATIVE_INFINITY;
  const leads = async () => {
    if (performance.now() - ledAtMs < renewAfterMs) return true;
    const askedAtMs = performance.now();
    if (await isCutOff()) await resignLeadership(redis, workerId);
    else if (await acquireLeadership(redis, workerId)) {
      ledAtMs = askedAtMs;
      return true;
    }
    for (const gauge of measured) gauge.remove();
    resync.beginAnew();
    return false;
  };
  const warnOf = openThrottles(logFailureAfterMs);
  const run = async ({ name, work, gauges = [] }: Step) => {
    try {
      await work();
    } catch (error) {
      for (const gauge of gauges) gauge.remove();
      metrics.maintenanceFailures.inc({ step: name });
      warnOf(name, (leftOut) => log.warn({ err: error, leftOut }, `a step of maintenance failed: ${name}`));
    }
  };
  const { together, reconcile } = stepsOfEachRun(context, () => resync.continue(context, leads));
  const slowSteps = stepsOfSomeRuns(context);
  for (const { name } of [...together, reconcile, ...slowSteps]) metrics.maintenanceFailures.inc({ step: name }, 0);
  let runs = 0;
  const runDue = async () => {
    if (!(await leads())) return;
    await Promise.all(together.map(run));
    for (const step of runs % slowStepsEvery === 0 ? [reconcile, ...slowSteps] : [reconcile]) {
      if (!(await leads())) return;
      await run(step);
    }
    runs += 1;
  };
  shutdown.register("leadership", async () => {
    // A lease that stays in an unreachable Redis expires.
    await resignLeadership(redis, workerId).catch((error) => log.warn({ err: error }, "the lease was not given back"));
  });
  const pauseMs = protocolTimes.maintenanceIntervalMs;
  runPeriodically({ name: "maintenance", pauseMs, run: runDue, measured, log, metrics, shutdown });
}

/** Those that run together, so that an idle worker's questions share messages, and the comparison that follows them. */
function stepsOfEachRun(
  context: Maintaining,
  resync: () => Promise<void>,
): { together: readonly Step[]; reconcile: Step } {
  const { redis, metrics } = context;
  let cursor: ReconcileCursor = { after: "", driftMils: 0 };
  let roundBeganAtMs = Number.NEGATIVE_INFINITY;
  const measureHolds = async () => {
    const seen = await readOpenHolds(redis);
    metrics.holdsOpen.set(seen.open);
    metrics.heldMils.set(seen.heldMils);
  };
  const reconcile = async () => {
    if (cursor.after === "") {
      if (performance.now() - roundBeganAtMs < reconcileRoundMsMin) return;
      roundBeganAtMs = performance.now();
    }
    cursor = await reconcileNextPage(context, cursor);
  };
  return {
    together: [
      { name: "resync", work: resync },
      { name: "sweep", work: () => sweepHolds(context) },
      { name: "open_holds", work: measureHolds, gauges: [metrics.holdsOpen, metrics.heldMils] },
      { name: "gaps", work: () => recordGaps(context) },
    ],
    reconcile: { name: "reconcile", work: reconcile, gauges: [metrics.ledgerDriftMils] },
  };
}

function stepsOfSomeRuns(context: Maintaining): Step[] {
  const { config, database, redis, clock, log, metrics } = context;
  let thresholdsAfter = "";
  let keptSince = "";
  const countGaps = async () => metrics.ledgerGapsOpen.set((await countOpenGaps(database)).gaps);
  const measureSnapshot = async () =>
    metrics.oldestSnapshotAge.set((await readOldestSnapshot(database))?.transactions ?? 0);
  const clearAnswers = async () => {
    if (await clearOldAnswers(database)) log.info("emptied the table of the answers and keys that have expired");
  };
  const clearSearchLog = async () => {
    const days = await rotateDays(database, config.SEARCH_LOG_DAYS);
    if (days > 0) log.info({ days }, "removed old days of the search log");
    await clearOldRefused(database, config.SEARCH_LOG_DAYS, oldRefusedPerRunMax);
  };
  const clearKept = async () => {
    const days = config.KEPT_ANSWERS_DAYS;
    await rotateDays(database, days, "kept_answers");
    const page = { since: keptSince, countsMax: keptCountsPerRun, rowsMax: oldAnswersPerRunMax };
    keptSince = await clearKeptAnswers(database, days, page);
  };
  const clearRefunds = async () => {
    for (let pages = 0; pages < oldRefundPagesPerRunMax; pages += 1)
      if ((await clearOldRefunds(database, oldRefundsPerPage)) < oldRefundsPerPage) return;
  };
  const notice = async () => {
    if (config.WEBHOOK_TARGETS === "none") return;
    const { after, errors } = await noticeLowBalances(context, { after: thresholdsAfter, limit: thresholdsPerRun });
    thresholdsAfter = after;
    if (errors.length > 0) throw errors[0];
  };
  return [
    { name: "heartbeats", work: () => removeStaleHeartbeats(redis, clock.nowMs()) },
    { name: "stall_check", work: () => boundStallCheck(redis) },
    { name: "turns", work: () => lowerTurns(redis) },
    { name: "failed_searches", work: () => removeOldFailedSearches(redis, clock.nowMs()) },
    { name: "undelivered", work: () => reverseUndelivered(context) },
    { name: "open_gaps", work: countGaps, gauges: [metrics.ledgerGapsOpen] },
    { name: "oldest_snapshot", work: measureSnapshot, gauges: [metrics.oldestSnapshotAge] },
    { name: "answers", work: clearAnswers },
    { name: "sign_ins", work: () => clearOldSignIns(database, oldSignInsPerRunMax) },
    { name: "refunds", work: clearRefunds },
    { name: "search_log", work: clearSearchLog },
    { name: "kept_answers", work: clearKept },
    { name: "webhook_events", work: () => deleteOldEvents(database, oldEventsPerRunMax) },
    { name: "low_balances", work: notice },
  ];
}

/**
 * Leadership is a lease in Redis: a key with the leader's id and an expiry.
 *
 * - A worker leads once Redis has confirmed the lease, and relies on that until its next renewal.
 * - The leader renews the lease before the steps that run together, before each other step, and before each page of a long one,
 *   unless it did so 100 ms ago or less. If it dies or loses Redis, the lease expires after 3 s, and the next worker that tries
 *   becomes the leader. A leader that stops, or alone does not reach Postgres, gives the lease back.
 * - A step that waits for the lock of an organization waits briefly: if it outlasted the lease in every worker, the steps behind it
 *   would never run.
 * - Two workers may lead for a moment: a frozen leader may continue after its lease expired, and Redis may lose the key. That costs
 *   work and does no harm: every step is decided in Postgres, or stores a version that only replaces an older one.
 */
const leaseKey = "maintenance";

const leadScript = new Script("lead", new URL("lead.lua", import.meta.url));

/** Takes or renews the lease. @returns whether this worker leads. @throws if Redis does not answer. */
async function acquireLeadership(redis: Redis, workerId: string): Promise<boolean> {
  return (await leadScript.run(redis, [leaseKey], [workerId, protocolTimes.leaderLeaseMs])) === 1;
}

/** Gives the lease back, so that another worker need not wait for it to expire. */
async function resignLeadership(redis: Redis, workerId: string): Promise<void> {
  if ((await redis.get(leaseKey)) === workerId) await redis.del(leaseKey);
}
