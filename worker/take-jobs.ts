import { type Job, Worker } from "bullmq";
import { isCharged } from "../shared/credits/ledger.ts";
import { throttledWarning } from "../shared/log.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { queueName, queuePrefix, searchJob } from "../shared/queue/search-queue.ts";
import { openBlocking } from "../shared/redis/connect.ts";
import type { WorkerContext } from "./context.ts";
import { runSearchJob } from "./run-search.ts";

// A search that kills three workers is not given to a fourth.
const takeOversMax = 2;
const drainDelaySeconds = 5;

// Until one has run; afterwards the pace is the mean of the first ones, and follows the last ones.
const firstRunMs = 100;
const smoothedOver = 16;

/** How long a search keeps a place of the worker busy, smoothed; what the API reckons the queue's wait with. */
export interface AverageRunTime {
  runMs: number;
}

/** Takes searches from the queue, as many at once as configured, until the process closes. */
export function takeJobs(context: WorkerContext): AverageRunTime {
  const { config, log, metrics, shutdown } = context;
  const pace: AverageRunTime = { runMs: firstRunMs };
  let runs = 0;
  const active = new Map<string, { job: Job; token: string | undefined }>();
  const connection = openBlocking({ url: config.REDIS_URL, name: "worker-queue", log, shutdown });

  const take = async (job: Job, token?: string) => {
    const startedAtMs = performance.now();
    active.set(job.id ?? "", { job, token });
    try {
      await runSearchJob(context, searchJob.parse(job.data));
    } finally {
      active.delete(job.id ?? "");
      runs += 1;
      pace.runMs += (performance.now() - startedAtMs - pace.runMs) / Math.min(runs, smoothedOver);
    }
  };
  const worker = new Worker(queueName, take, {
    connection,
    prefix: queuePrefix,
    concurrency: config.WORKER_CONCURRENCY,
    lockDuration: protocolTimes.jobLockMs,
    stalledInterval: protocolTimes.stallCheckIntervalMs,
    maxStalledCount: takeOversMax,
    drainDelay: drainDelaySeconds,
  });
  const warn = throttledWarning(log, "the worker has a problem");
  worker.on("error", (error) => {
    metrics.backgroundErrors.inc({ where: "worker" });
    warn(error);
  });
  worker.on("failed", (job, error) => void endFailed(context, job, error));
  shutdown.register("jobs", () => finishOrHandBack(worker, active));
  return pace;
}

/** A job that threw (a defect of ours), or killed one worker after the other: the caller is told, the hold goes back. */
async function endFailed(context: WorkerContext, job: Job | undefined, error: Error): Promise<void> {
  const read = searchJob.safeParse(job?.data);
  context.log.error({ err: error, requestId: job?.id }, "a search failed by a defect");
  if (!read.success) return;
  const { requestId, organizationId, key, inbox } = read.data;
  const trace = { provider: "none", from: "provider" as const, calls: [], costMicroUsd: 0, queueMs: 0, runMs: 0 };
  await context.settlement
    .settle({
      request: { requestId, organizationId, key, wanted: "refund", reason: "worker_failed" },
      retryForMs: 5_000,
      toOutcome: (decision) => {
        return { kind: "failure", code: "internal_error", details: {}, charged: isCharged(decision) };
      },
      reply: { inbox, trace },
      ifCharged: "end",
    })
    .catch((cause: unknown) => context.log.warn({ err: cause, requestId }, "a failed search is left to the sweeper"));
}

async function finishOrHandBack(
  worker: Worker,
  active: Map<string, { job: Job; token: string | undefined }>,
): Promise<void> {
  const finished = worker.close().then(() => true);
  const bound = new Promise<false>((resolve) => setTimeout(resolve, protocolTimes.jobDrainMs, false).unref());
  if (await Promise.race([finished, bound])) return;
  // Another worker starts them at once; what this one still decides is the same decision.
  await Promise.allSettled([...active.values()].map(({ job, token }) => job.moveToWait(token)));
}
