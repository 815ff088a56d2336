import type { Context } from "../shared/context.ts";
import { openSettlement } from "../shared/credits/settlement.ts";
import { newId } from "../shared/ids.ts";
import { startOpsServer } from "../shared/process/ops-server.ts";
import { startProcess } from "../shared/process/start-process.ts";
import { startMaintenance } from "./maintenance.ts";
import type { WorkerContext } from "./context.ts";
import { openSingleFlight } from "./engine/single-flight.ts";
import { defineLeaseScripts } from "./engine/flight-leases.ts";
import { openGoogleEngine } from "./engine/google-engine.ts";
import { startHeartbeat } from "./heartbeat.ts";
import { takeJobs } from "./take-jobs.ts";

await startProcess({ name: "worker", databaseSizeMax: 4, open: openWorker });

async function openWorker(shared: Context): Promise<void> {
  const { shutdown, config, database, redis } = shared;
  const workerId = newId("worker");
  const google = openGoogleEngine(shared);
  shutdown.register("engine", () => google.close());
  defineLeaseScripts(redis);
  const engine = openSingleFlight(shared, google);
  const settlement = openSettlement(shared);
  shutdown.register("settlements", () => settlement.idle());
  const context: WorkerContext = { ...shared, engine, settlement };

  startMaintenance(context, workerId);
  const reported = startHeartbeat(context, workerId, takeJobs(context));
  await startOpsServer(context, {
    port: config.WORKER_OPS_PORT,
    checks: { redis: () => redis.ping(), postgres: () => database.query("select 1"), reported },
  });
}
