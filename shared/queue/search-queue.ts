import { type ConnectionOptions, Queue, type QueueOptions } from "bullmq";
import type { Redis } from "ioredis";
import { throttledWarning } from "../log.ts";
import type { Context } from "../process/context.ts";
import { protocolTimes } from "../protocol-times.ts";
import { awaitReady } from "../redis/connect.ts";
import { type SearchJob, searchJob } from "./search-job.ts";
import { withinShareMax } from "./turns.ts";

/**
 * The queue from the API to the workers. Only this file and the worker's job loop (worker/job-loop.ts, worker/manual-worker.ts) know
 * BullMQ: its options, and the keys that it keeps in Redis, which are private to it. Check them when BullMQ is upgraded.
 */

export const queueName = "searches";
export const prefix = "{serpmill}";

/**
 * Keys of BullMQ: lists of the ids of waiting and running jobs, of which the last comes next; those that wait behind the list, by turn;
 * what wakes idle workers; those that failed, by the time of that; a stream; the pause between two looks for stalled jobs; and a hash for
 * each job.
 */
export const queueKeys = {
  waiting: `${prefix}:${queueName}:wait`,
  waitingByTurn: `${prefix}:${queueName}:prioritized`,
  marker: `${prefix}:${queueName}:marker`,
  running: `${prefix}:${queueName}:active`,
  failed: `${prefix}:${queueName}:failed`,
  events: `${prefix}:${queueName}:events`,
  stallCheck: `${prefix}:${queueName}:stalled-check`,
  job: (requestId: string) => `${prefix}:${queueName}:${requestId}`,
};

/** How long, and how many, searches that failed stay with their keywords. */
export const failedKept = { seconds: 3_600, searches: 1_000 };
// Serpmill does not read BullMQ's event stream. It cannot be switched off, only kept short.
const eventsMax = 1_000;
/** The score of a job in {@link queueKeys}.waitingByTurn is its turn times this, and a counter. */
export const scorePerTurn = 2 ** 32;
/** The lowest score of a search beyond the share of its organization. */
export const beyondShareScore = (withinShareMax + 1) * scorePerTurn;
/** The field of a job where BullMQ keeps the name of the worker that took it. */
const jobWorkerField = "pb";

/**
 * BullMQ's own view of the queue. The product uses {@link openSearchQueue}. BullMQ asks Redis for its version once, and if that
 * fails, as at a start on a busy machine, every command of the queue fails until the process ends. So it must not ask.
 */
export const createQueue = (connection: ConnectionOptions, options: Omit<QueueOptions, "connection"> = {}) =>
  new Queue(queueName, { ...options, connection, prefix, skipVersionCheck: true });

/** BullMQ's view of the queue for a dashboard, which only reads: the options that the API stored in Redis stay as they are. */
export function openQueueReader(connection: Redis, failed: (error: Error) => void): Queue {
  const queue = createQueue(connection, { skipMetasUpdate: true, skipWaitingForReady: true });
  queue.on("error", failed);
  return queue;
}

/** Reads the owner of a job, even of one that another release wrote. */
const ownerOfJob = searchJob.pick({ organizationId: true });

/**
 * Deletes searches that failed an hour ago. BullMQ itself deletes them only when another fails, and with its own command would
 * write to its event stream each time.
 */
export async function removeOldFailedSearches(redis: Redis, nowMs: number): Promise<void> {
  const until = nowMs - failedKept.seconds * 1_000;
  const old = await redis.zrangebyscore(queueKeys.failed, 0, until, "LIMIT", 0, failedKept.searches);
  if (old.length === 0) return;
  await redis.del(...old.map(queueKeys.job));
  await redis.zrem(queueKeys.failed, ...old);
}

/**
 * Ends a pause of BullMQ that is longer than it was set to, because the clock of Redis was set back. No worker would take over the
 * searches of dead ones until the clock is there again.
 */
export async function boundStallCheck(redis: Redis): Promise<void> {
  await redis.pexpire(queueKeys.stallCheck, protocolTimes.stallCheckIntervalMs, "LT");
}

/** Deletes an organization's failed searches. */
export async function removeFailedSearches(redis: Redis, organizationId: string): Promise<void> {
  const queue = openQueueReader(redis, () => undefined);
  const jobs = await queue.getFailed();
  const own = jobs.filter(({ data }) => ownerOfJob.safeParse(data).data?.organizationId === organizationId);
  for (const job of own) await job.remove();
  await queue.close();
}

export interface SearchQueue {
  /**
   * Enqueues a search under its request id, so that enqueueing it again while it waits changes nothing. Searches that
   * are admitted together leave with one write.
   * @param turn searches of turn 0 are taken first, then those of 1, and so on (turns.ts).
   * @throws if Redis did not confirm it; the search may be in the queue all the same.
   */
  enqueue(job: SearchJob, turn: number): Promise<void>;
  /** Removes a search, unless a worker has it. @returns whether no worker has it. @throws if Redis does not answer. */
  remove(requestId: string): Promise<boolean>;
  /** The worker that has a search; undefined while it waits, and once it has ended. @throws if Redis does not answer. */
  workerOf(requestId: string): Promise<string | undefined>;
}

/**
 * Opens the queue for an API process, on a connection of its own: every pipeline of ioredis copies all scripts of its
 * connection, and BullMQ has many. Waits until Redis is reachable.
 */
export async function openSearchQueue(
  context: Pick<Context, "connections" | "metrics" | "log" | "shutdown">,
): Promise<SearchQueue> {
  const { connections, metrics, log, shutdown } = context;
  const connection = connections.openCommands("queue");
  await awaitReady(connection, "queue", log);
  const queue = createQueue(connection, { streams: { events: { maxLen: eventsMax } }, skipWaitingForReady: true });
  const warn = throttledWarning(log, "queue error");
  queue.on("error", (error) => {
    metrics.backgroundErrors.inc({ where: "queue" });
    warn(error);
  });
  shutdown.register("queue", () => queue.close());
  return {
    enqueue: async (job, turn) => {
      // One by one: ioredis copies all scripts for a pipeline.
      await queue.add("search", job, { jobId: job.requestId, ...(turn > 0 && { priority: turn }) });
    },
    remove: async (requestId) => (await queue.remove(requestId)) === 1,
    workerOf: async (requestId) => (await connection.hget(queueKeys.job(requestId), jobWorkerField)) ?? undefined,
  };
}
