import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeHeartbeat, writeHeartbeat } from "../shared/queue/worker-heartbeats.ts";
import type { AverageRunTime } from "./take-jobs.ts";

type Reporting = Pick<Context, "clock" | "config" | "redis" | "shutdown" | "log" | "metrics">;

/**
 * Writes every second that this worker takes jobs, and how fast. A worker that stops removes its heartbeat before its last
 * jobs end, so that the APIs do not count on its capacity.
 * @returns a readiness check that rejects unless Redis took a heartbeat that the APIs still count.
 */
export function startHeartbeat(
  { clock, config, redis, shutdown, log, metrics }: Reporting,
  workerId: string,
  average: AverageRunTime,
): () => Promise<void> {
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  const run = async () => {
    await clock.read(redis);
    const own = { concurrency: config.WORKER_CONCURRENCY, runMs: average.runMs, atMs: clock.nowMs() };
    await writeHeartbeat(redis, workerId, own);
    writtenAtMs = performance.now();
  };
  shutdown.register("heartbeat", () => removeHeartbeat(redis, workerId));
  const pauseMs = protocolTimes.heartbeatIntervalMs;
  runPeriodically({ name: "report", pauseMs, run, log, metrics, shutdown });
  return async () => {
    if (performance.now() - writtenAtMs > protocolTimes.heartbeatTimeoutMs) throw new Error("no heartbeat lately");
  };
}
