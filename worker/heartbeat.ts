import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeHeartbeat, writeHeartbeat } from "../shared/queue/worker-heartbeats.ts";
import type { SlotLevel } from "./slot-level.ts";
import type { AverageRunTime } from "./take-jobs.ts";

type Reporting = Pick<Context, "clock" | "redis" | "shutdown" | "log" | "metrics">;

export interface Heartbeat {
  /** Writes a heartbeat now. Rejects if Redis did not take it. */
  report: () => Promise<void>;
  /** A readiness check: rejects unless Redis took a heartbeat that the APIs still count. */
  check: () => Promise<void>;
}

/**
 * Writes every second that this worker takes jobs, and how fast. A worker that stops removes its heartbeat before its last
 * jobs end, so that the APIs do not count on its capacity.
 */
export function startHeartbeat(
  { clock, redis, shutdown, log, metrics }: Reporting,
  workerId: string,
  { level, average }: { level: SlotLevel; average: Pick<AverageRunTime, "runMs"> },
): Heartbeat {
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  const report = async () => {
    await clock.read(redis);
    const own = { concurrency: level.slots, runMs: average.runMs, atMs: clock.nowMs() };
    await writeHeartbeat(redis, workerId, own);
    writtenAtMs = performance.now();
  };
  shutdown.register("heartbeat", async () => {
    // One that stays in an unreachable Redis expires.
    await removeHeartbeat(redis, workerId).catch((error) => log.warn({ err: error }, "the heartbeat was not removed"));
  });
  const pauseMs = protocolTimes.heartbeatIntervalMs;
  runPeriodically({ name: "report", pauseMs, run: report, log, metrics, shutdown });
  const check = async () => {
    if (performance.now() - writtenAtMs > protocolTimes.heartbeatTimeoutMs) throw new Error("no heartbeat lately");
  };
  return { report, check };
}
