import type { Context } from "../shared/context.ts";
import { openSettlement } from "../shared/credits/settlement.ts";
import { newId } from "../shared/ids.ts";
import { startOps } from "../shared/ops.ts";
import { startProcess } from "../shared/start-process.ts";
import { startCaretaker } from "./caretaker.ts";
import type { WorkerContext } from "./context.ts";
import { openAskOnce } from "./engine/ask-once.ts";
import { defineClaimScripts } from "./engine/claims.ts";
import { createGoogle } from "./engine/google.ts";
import { startReporting } from "./report.ts";
import { takeJobs } from "./take-jobs.ts";

await startProcess({ name: "worker", databaseSizeMax: 4, open: openWorker });

async function openWorker(shared: Context): Promise<void> {
  const { closing, config, database, redis } = shared;
  const workerId = newId("worker");
  const google = createGoogle(shared);
  closing.push("engine", () => google.close());
  defineClaimScripts(redis);
  const engine = openAskOnce(shared, google);
  const settlement = openSettlement(shared);
  closing.push("settlements", () => settlement.idle());
  const context: WorkerContext = { ...shared, engine, settlement };

  startCaretaker(context, workerId);
  const reported = startReporting(context, workerId, takeJobs(context));
  await startOps(context, {
    port: config.WORKER_OPS_PORT,
    checks: { redis: () => redis.ping(), postgres: () => database.query("select 1"), reported },
  });
}
