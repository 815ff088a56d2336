import type { Redis } from "ioredis";
import type { Context } from "../../shared/context.ts";
import type { CallerError } from "../../shared/errors.ts";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { type Backlog, readBacklog, readOldestWaitMs } from "../../shared/queue/search-queue.ts";
import { readWorkerCapacity, type WorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import { unavailable } from "../errors.ts";

// The wait that a search is taken for, as a share of the time that it has left. The other half is for what the reckoning
// cannot know: a worker that has just died, a provider that became slower, searches that other APIs enqueue meanwhile.
const waitShareMax = 0.5;
const backlogReadEveryMs = 50;
const retryAfterMsMax = 30_000;

/**
 * Refuses early what could not be answered in time. The queue is read again while searches come, beside them and never
 * on their way; those that were taken since the last reading are counted here.
 */
export class Shedding {
  readonly #redis: Redis;
  readonly #stopping: AbortSignal;
  #workforce: WorkerCapacity | undefined;
  #seenAtMs = Number.NEGATIVE_INFINITY;
  #backlog: Backlog = { waiting: 0, running: 0 };
  #taken = 0;
  #takenWhenRead = 0;
  #readAtMs = Number.NEGATIVE_INFINITY;

  constructor(redis: Redis, stopping: AbortSignal) {
    this.#redis = redis;
    this.#stopping = stopping;
  }

  /** Takes over what was read; that nobody reports counts only after a while, since a flushed Redis has no reports either. */
  updateCapacity(workforce: WorkerCapacity): void {
    const nowMs = performance.now();
    if (workforce.workers > 0) this.#seenAtMs = nowMs;
    if (nowMs - this.#seenAtMs < protocolTimes.heartbeatTimeoutMs && workforce.workers === 0) return;
    this.#workforce = workforce;
  }

  /** Reads how long the queue is. @throws where Redis does not answer. */
  async refreshBacklog(): Promise<Backlog> {
    this.#readAtMs = performance.now();
    // Those taken while the question is on its way count twice at most, never not at all.
    const taken = this.#taken;
    this.#backlog = await readBacklog(this.#redis);
    this.#takenWhenRead = taken;
    return this.#backlog;
  }

  /** A search was admitted and goes into the queue. */
  countAdmitted(): void {
    this.#taken += 1;
  }

  /** The refusal for a search that has this long left, or undefined where it can be taken. */
  refusal(remainingMs: number): CallerError | undefined {
    if (this.#stopping.aborted) return unavailable("shutting_down");
    if (!this.#workforce || this.#workforce.workers === 0) return unavailable("no_workers");
    // An unanswered question needs no word of its own: the rounds below ask the same, and tell.
    if (performance.now() - this.#readAtMs >= backlogReadEveryMs) void this.refreshBacklog().catch(() => undefined);

    const { slots: places, ratePerMs } = this.#workforce;
    const ahead = this.#backlog.waiting + this.#backlog.running + this.#taken - this.#takenWhenRead;
    if (ahead < places) return undefined;
    const waitMs = (ahead - places + 1) / ratePerMs;
    const runMs = places / ratePerMs;
    const overMs = waitMs - Math.min(remainingMs * waitShareMax, remainingMs - runMs);
    if (overMs <= 0) return undefined;
    return unavailable("queue_too_long", Math.min(Math.max(Math.ceil(overMs), 1_000), retryAfterMsMax));
  }
}

/** Starts to watch workers and queue, and tells what it sees as metrics. */
export function openShedding(context: Context, stopping: AbortSignal): Shedding {
  const { redis, clock, metrics, log, shutdown } = context;
  const shedding = new Shedding(redis, stopping);
  const measured = [metrics.queueDepth, metrics.workersReporting, metrics.queueOldestSeconds];
  const run = async () => {
    await clock.read(redis);
    const workforce = await readWorkerCapacity(redis, clock.nowMs());
    const { waiting } = await shedding.refreshBacklog();
    shedding.updateCapacity(workforce);
    metrics.queueDepth.set(waiting);
    metrics.workersReporting.set(workforce.workers);
    metrics.queueOldestSeconds.set((await readOldestWaitMs(redis, clock.nowMs())) / 1_000);
  };
  runPeriodically({
    name: "shedding",
    pauseMs: protocolTimes.heartbeatIntervalMs,
    run,
    measured,
    log,
    metrics,
    shutdown,
  });
  return shedding;
}
