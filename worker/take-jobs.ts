import type { Context } from "../shared/process/context.ts";
import { isCharged } from "../shared/credits/ledger.ts";
import type { SearchJob } from "../shared/queue/search-job.ts";
import { openSearchWorker, type SearchWorker, WorkersLost } from "../shared/queue/search-queue.ts";
import { logSearch, notSearched, type RunningSearches, runSearchJob } from "./run-search.ts";

// The assumption until the first search has run.
const initialRunMs = 100;
const averageOver = 16;
const failedRetryMs = 5_000;

/**
 * How long a search occupies a slot of this worker: the mean of the first runs, then a moving average. The API uses it to
 * estimate how long a search will wait in the queue.
 */
export class AverageRunTime {
  #runMs = initialRunMs;
  #runs = 0;

  get runMs(): number {
    return this.#runMs;
  }

  add(runMs: number): void {
    this.#runs += 1;
    this.#runMs += (runMs - this.#runMs) / Math.min(this.#runs, averageOver);
  }
}

/** Takes searches from the queue until the process stops. @param slots how many at once, until the worker is set anew. */
export async function takeJobs(
  context: Context & RunningSearches,
  slots: number,
): Promise<{ worker: SearchWorker; average: AverageRunTime }> {
  const average = new AverageRunTime();
  const run = async (job: SearchJob, isRepeated: boolean) => {
    const startedAtMs = performance.now();
    try {
      await runSearchJob(context, job, isRepeated);
    } finally {
      average.add(performance.now() - startedAtMs);
    }
  };
  const failed = async (error: Error, requestId: string | undefined, job: SearchJob | undefined) => {
    if (error instanceof WorkersLost) context.log.warn({ requestId }, "a search lost every worker that had it");
    else context.log.error({ err: error, requestId }, "unhandled error in a search");
    if (job) await refundFailed(context, job);
  };
  return {
    worker: await openSearchWorker(context, { run, failed }, { workerId: context.workerId, concurrency: slots }),
    average,
  };
}

/** Refunds a search that threw, which is a bug, or that lost one worker after the other, and answers its caller. */
async function refundFailed(context: RunningSearches, job: SearchJob): Promise<void> {
  const { requestId, organizationId, tokenId, key, inbox } = job;
  const trace = { ...notSearched, worker: context.workerId, from: "provider" as const, queueMs: 0, runMs: 0 };
  const request = { requestId, organizationId, tokenId, key, wanted: "refund", reason: "worker_failed" } as const;
  try {
    const decision = await context.settlement.decide(request, failedRetryMs);
    const outcome = { kind: "failure", code: "internal_error", details: {}, charged: isCharged(decision) } as const;
    await context.settlement.publish(
      { request, decision, outcome, reply: { inbox, trace }, ifCharged: "end_hold" },
      failedRetryMs,
    );
  } catch (error) {
    context.log.warn({ err: error, requestId }, "the sweeper will refund a failed search");
  }
  logSearch(context, job, trace);
}
