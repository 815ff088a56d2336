import { startRounds } from "../shared/rounds.ts";
import { reportEveryMs, reportWorker, withdrawWorker } from "../shared/workforce.ts";
import type { WorkerContext } from "./context.ts";
import type { Pace } from "./take-jobs.ts";

/**
 * Tells the APIs every second that this worker takes jobs, and how fast; withdrawn when it stops, before its last jobs
 * end, so that nothing is enqueued on its account.
 * @returns a question that rejects until the first report is written.
 */
export function startReporting(context: WorkerContext, workerId: string, pace: Pace): () => Promise<void> {
  const { clock, config, redis, closing, log, metrics } = context;
  let reported = false;
  const run = async () => {
    await clock.read(redis);
    const own = { concurrency: config.WORKER_CONCURRENCY, runMs: pace.runMs, atMs: clock.nowMs() };
    await reportWorker(redis, workerId, own);
    reported = true;
  };
  closing.push("worker's report", () => withdrawWorker(redis, workerId));
  startRounds({ name: "report", pauseMs: reportEveryMs, run, log, metrics, closing });
  return async () => {
    if (!reported) throw new Error("not reported yet");
  };
}
