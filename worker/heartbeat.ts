import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { writeHeartbeat, removeHeartbeat } from "../shared/queue/worker-heartbeats.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import type { WorkerContext } from "./context.ts";
import type { AverageRunTime } from "./take-jobs.ts";

/**
 * Tells the APIs every second that this worker takes jobs, and how fast; withdrawn when it stops, before its last jobs
 * end, so that nothing is enqueued on its account.
 * @returns a question that rejects until the first report is written.
 */
export function startHeartbeat(context: WorkerContext, workerId: string, pace: AverageRunTime): () => Promise<void> {
  const { clock, config, redis, shutdown, log, metrics } = context;
  let reported = false;
  const run = async () => {
    await clock.read(redis);
    const own = { concurrency: config.WORKER_CONCURRENCY, runMs: pace.runMs, atMs: clock.nowMs() };
    await writeHeartbeat(redis, workerId, own);
    reported = true;
  };
  shutdown.register("worker's report", () => removeHeartbeat(redis, workerId));
  runPeriodically({ name: "report", pauseMs: protocolTimes.heartbeatIntervalMs, run, log, metrics, shutdown });
  return async () => {
    if (!reported) throw new Error("not reported yet");
  };
}
