import { setTimeout as sleep } from "node:timers/promises";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { removeHeartbeat, writeHeartbeat } from "../shared/queue/worker-heartbeats.ts";
import type { AverageRunTime, ConcurrencyController } from "./concurrency-controller.ts";
import type { JobLoop } from "./job-loop.ts";
import type { PostgresCheck } from "./postgres-check.ts";

type Reporting = Pick<Context, "config" | "clock" | "redis" | "shutdown" | "log" | "metrics">;

interface Heartbeat {
  /** Writes a heartbeat now. Rejects if Redis did not take it. */
  report: () => Promise<void>;
  /** A readiness check: rejects unless Redis took a heartbeat that the APIs still count. */
  check: () => Promise<void>;
}

interface Reported {
  controller: ConcurrencyController;
  average: Pick<AverageRunTime, "runMs">;
  jobs: Pick<JobLoop, "pause" | "resume" | "handBack">;
  postgresCheck: PostgresCheck;
}

/**
 * Reports every second that this worker takes jobs, how fast, and from which providers. A worker that stops removes its
 * heartbeat first and takes jobs a little longer, until no API counts on its capacity. A worker that does not reach Postgres could
 * settle no search: it takes none until it reaches Postgres again. If it alone does not, it also reports nothing, and hands the
 * searches that it has to the others; if none does, the APIs see that in the reports.
 */
export function startHeartbeat(
  { config, clock, redis, shutdown, log, metrics }: Reporting,
  workerId: string,
  { controller, average, jobs, postgresCheck }: Reported,
): Heartbeat {
  let writtenAtMs = Number.NEGATIVE_INFINITY;
  let takesJobs = true;
  const takeJobs = (mayTake: boolean) => {
    if (mayTake === takesJobs) return;
    takesJobs = mayTake;
    if (mayTake) {
      jobs.resume();
      log.info("this worker reaches Postgres again and takes searches");
      return;
    }
    jobs.pause();
    log.warn("this worker does not reach Postgres: it takes no searches");
  };
  const report = async () => {
    takeJobs(!postgresCheck.isAway());
    if (await postgresCheck.isCutOff()) {
      await Promise.all([removeHeartbeat(redis, workerId), jobs.handBack()]);
      return;
    }
    const own = {
      concurrency: controller.slots,
      slotsCeiling: controller.slotsCeiling,
      providers: config.SERP_PROVIDERS,
      runMs: average.runMs,
      reachesPostgres: postgresCheck.reachesPostgres(),
      atMs: clock.nowMs(),
    };
    // The next heartbeat has the time that is read with this one.
    await Promise.all([clock.read(redis), writeHeartbeat(redis, workerId, own)]);
    writtenAtMs = performance.now();
  };
  // Callers are refused until then. The periodic report below logs the errors.
  postgresCheck.whenBack(() => void report().catch(() => undefined));
  shutdown.register("heartbeat", async () => {
    try {
      await removeHeartbeat(redis, workerId);
      await sleep(protocolTimes.heartbeatLeadMs);
    } catch (error) {
      // One that stays in an unreachable Redis expires.
      log.warn({ err: error }, "the heartbeat was not removed");
    }
  });
  const pauseMs = protocolTimes.heartbeatIntervalMs;
  runPeriodically({ name: "report", pauseMs, run: report, log, metrics, shutdown });
  const check = async () => {
    if (performance.now() - writtenAtMs > protocolTimes.heartbeatTimeoutMs) throw new Error("no heartbeat lately");
  };
  return { report, check };
}
