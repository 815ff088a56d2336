import type { Context } from "../shared/process/context.ts";
import { openKeptAnswers } from "../shared/credits/kept-answers.ts";
import { Settlement } from "../shared/credits/settlement.ts";
import { requireSchema } from "../shared/database/require-schema.ts";
import { newId } from "../shared/ids.ts";
import type { OpsParts } from "../shared/process/ops-server.ts";
import { startWatchdog } from "../shared/process/watchdog.ts";
import { startProcess } from "../shared/process/start-process.ts";
import { openSearchLog } from "../shared/search-log/search-log.ts";
import { openDisconnectedSearches } from "./disconnected-searches.ts";
import { adjustSlots } from "./adjust-slots.ts";
import { type GoogleEngine, openGoogleEngine } from "./engine/google-engine.ts";
import { openListedLocations } from "./locations/listed-locations.ts";
import { openSingleFlight } from "./engine/single-flight.ts";
import { watchOpenSearches } from "./open-searches.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { startMaintenance } from "./maintenance.ts";
import { callOutcomes } from "./providers/provider.ts";
import { openRawAnswers } from "./raw-answers/record-raw-answers.ts";
import { startPostgresCheck } from "./postgres-check.ts";
import { ConcurrencyController } from "./concurrency-controller.ts";
import { takeJobs } from "./take-jobs.ts";
import { deliverEvents } from "./deliver-events.ts";

await startProcess({
  name: "worker",
  databaseSizeMax: 4,
  opsPort: (config) => config.WORKER_OPS_PORT,
  open: openWorker,
});

async function openWorker(context: Context): Promise<OpsParts> {
  const { config, database, redis, shutdown } = context;
  const workerId = newId("worker");
  const google = openGoogle(context);
  const engine = openSingleFlight(context, google);
  const searchLog = openSearchLog(context, "worker")?.searches;
  const keptAnswers = openKeptAnswers(context);
  const settlement = new Settlement(context);
  shutdown.register("settlements", () => settlement.idle());

  const postgresCheck = startPostgresCheck(context, workerId, settlement);
  startMaintenance({ ...context, settlement }, workerId, postgresCheck);
  deliverEvents(context);
  const controller = new ConcurrencyController(config.WORKER_CONCURRENCY);
  const disconnectedSearches = openDisconnectedSearches(context);
  const openSearchCounts = watchOpenSearches(context, google);
  const rawAnswers = openRawAnswers(context);
  const running = {
    ...context,
    workerId,
    engine,
    settlement,
    disconnectedSearches,
    openSearchCounts,
    rawAnswers,
    keptAnswers,
    searchLog,
  };
  const { jobs, average } = await takeJobs(running, controller.slots);
  const heartbeat = startHeartbeat(context, workerId, { controller, average, jobs, postgresCheck });
  // The APIs admit by the slots that they know of.
  adjustSlots(context, controller, { jobs, average, google, changed: heartbeat.report });
  startWatchdog(context, {
    isStuck: () => jobs.leavesJobsWaiting(),
    problem: "searches wait, and this worker has free slots and has taken none for 10 s",
  });
  return {
    checks: { redis: () => redis.ping(), postgres: () => requireSchema(database), reported: heartbeat.check },
  };
}

function openGoogle(context: Context): GoogleEngine {
  const { config, log, metrics } = context;
  for (const provider of config.SERP_PROVIDERS) {
    metrics.providerConfigured.set({ provider }, 1);
    for (const outcome of callOutcomes) metrics.providerCalls.inc({ provider, outcome }, 0);
  }
  if (config.SERP_PROVIDERS.includes("sandbox"))
    log.warn(
      "SERP_PROVIDERS has sandbox: it makes answers up, and callers pay for them. Choose others: docs/operating/providers.md",
    );
  const locations = openListedLocations(context, config.SERP_PROVIDERS);
  const google = openGoogleEngine({ ...context, locations });
  context.shutdown.register("engine", () => google.close());
  return google;
}
