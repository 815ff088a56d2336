import type { Context } from "../shared/context.ts";
import type { CallerError } from "../shared/errors.ts";
import { startRounds } from "../shared/rounds.ts";
import { queueName, queuePrefix } from "../shared/queue.ts";
import { readWorkforce, reportEveryMs, silentAfterMs, type Workforce } from "../shared/workforce.ts";
import { unavailable } from "./errors.ts";

const retryAfterMsMax = 30_000;

/** Refuses early what could not be answered in time, from what the workers reported within the last second. */
export class Shedding {
  #workforce: Workforce | undefined;
  #seenAtMs = Number.NEGATIVE_INFINITY;
  readonly #stopping: AbortSignal;

  constructor(stopping: AbortSignal) {
    this.#stopping = stopping;
  }

  /** Takes over what was read; that nobody reports counts only after a while, since a flushed Redis has no reports either. */
  learn(workforce: Workforce): void {
    const nowMs = performance.now();
    if (workforce.workers > 0) this.#seenAtMs = nowMs;
    if (nowMs - this.#seenAtMs < silentAfterMs && workforce.workers === 0) return;
    this.#workforce = workforce;
  }

  /** The refusal for a search that has this long left, or undefined where it can be taken. */
  refusal(remainingMs: number): CallerError | undefined {
    if (this.#stopping.aborted) return unavailable("shutting_down");
    if (!this.#workforce || this.#workforce.workers === 0) return unavailable("no_workers");
    const overMs = this.#workforce.expectedWaitMs - remainingMs;
    if (overMs <= 0) return undefined;
    return unavailable("queue_too_long", Math.min(Math.max(Math.ceil(overMs), 1_000), retryAfterMsMax));
  }
}

/** Starts to watch workers and queue, and tells what it sees as metrics. */
export function openShedding(context: Context, stopping: AbortSignal): Shedding {
  const { redis, clock, metrics, log, closing } = context;
  const shedding = new Shedding(stopping);
  const run = async () => {
    await clock.read(redis);
    const workforce = await readWorkforce(redis, clock.nowMs());
    shedding.learn(workforce);
    metrics.queueDepth.set(workforce.queueDepth);
    metrics.workersReporting.set(workforce.workers);
    metrics.queueOldestSeconds.set(await oldestAgeSeconds(context, workforce.oldestJobId));
  };
  startRounds({ name: "shedding", pauseMs: reportEveryMs, run, log, metrics, closing });
  return shedding;
}

async function oldestAgeSeconds({ redis, clock }: Context, jobId: string | undefined): Promise<number> {
  const enqueuedAtMs = jobId ? Number(await redis.hget(`${queuePrefix}:${queueName}:${jobId}`, "timestamp")) : 0;
  return enqueuedAtMs > 0 ? Math.max(0, clock.nowMs() - enqueuedAtMs) / 1_000 : 0;
}
