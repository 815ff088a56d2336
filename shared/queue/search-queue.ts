import { type ConnectionOptions, type Job, Queue, type QueueOptions, Worker, type WorkerOptions } from "bullmq";
import type { Redis } from "ioredis";
import { Batcher } from "../concurrency/batcher.ts";
import { InFlightEntries } from "../concurrency/in-flight-entries.ts";
import { waitFor } from "../concurrency/with-timeout.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";
import { protocolTimes } from "../protocol-times.ts";
import { awaitReady } from "../redis/connect.ts";
import type { RedisConnections } from "../redis/connections.ts";
import { type SearchJob, searchJob } from "./search-job.ts";

/**
 * The queue from the API to the workers. This is the only file that knows BullMQ: its options, and the keys that it keeps
 * in Redis, which are private to it. Check them here when BullMQ is upgraded.
 */

const queueName = "searches";
const prefix = "{serpmill}";

/**
 * Keys of BullMQ: lists of the ids of waiting and running jobs, newest first; those that wait behind the list, by their turn;
 * what wakes idle workers; a stream; and a hash for each job.
 */
export const queueKeys = {
  waiting: `${prefix}:${queueName}:wait`,
  waitingByTurn: `${prefix}:${queueName}:prioritized`,
  marker: `${prefix}:${queueName}:marker`,
  running: `${prefix}:${queueName}:active`,
  events: `${prefix}:${queueName}:events`,
  job: (requestId: string) => `${prefix}:${queueName}:${requestId}`,
};

// A failed search is refunded and answered, not retried; only the job of a dead worker is taken over. BullMQ reads this from
// the worker where a job has no options of its own, which would be serialized, stored and parsed for every search.
const keepJobs: Pick<WorkerOptions, "removeOnComplete" | "removeOnFail"> = {
  removeOnComplete: { count: 0 },
  removeOnFail: { age: 3_600, count: 1_000 },
};
// Serpmill does not read BullMQ's event stream. It cannot be switched off, only kept short.
const eventsMax = 1_000;
/** The score of a job in {@link queueKeys}.waitingByTurn is its turn times this, and a counter. */
export const scorePerTurn = 2 ** 32;
const jobsPerBatchMax = 128;
const batchConcurrency = 2;
// BullMQ fails a job that was taken over so often, with an error of its own class and this message.
const lostMessage = "job stalled more than allowable limit";
// Of workers that die with the job. A search that has killed three workers is not given to a fourth.
const takeOversMax = 2;
const drainDelaySeconds = protocolTimes.redisBlockMs / 1_000;

/** The field of a job in which BullMQ keeps the name of the worker that took it. */
const jobWorkerField = "pb";

/** BullMQ's own view of the queue. The product uses {@link openSearchQueue}. */
export const createQueue = (connection: ConnectionOptions, options: Omit<QueueOptions, "connection"> = {}) =>
  new Queue(queueName, { ...options, connection, prefix });

/** BullMQ's view of the queue for a dashboard, which only reads: the options that the API stored in Redis stay as they are. */
export function openQueueReader(connection: Redis, failed: (error: Error) => void): Queue {
  const queue = createQueue(connection, { skipMetasUpdate: true, skipWaitingForReady: true });
  queue.on("error", failed);
  return queue;
}

/** Reads the owner of a job, even of one that another release wrote. */
const ownerOfJob = searchJob.pick({ organizationId: true });

/** Deletes an organization's failed searches. The queue keeps them for an hour with their keywords, at most 1,000 in all. */
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
   * are ready in the same turn of the event loop share a round trip.
   * @param turn searches of turn 0 are taken first, in the order in which they came; then those of 1, and so on (turns.ts).
   * @throws if Redis did not confirm it; the search may be in the queue all the same.
   */
  enqueue(job: SearchJob, turn: number): Promise<void>;
  /** Removes a search, unless a worker has it. @returns whether no worker has it. @throws if Redis does not answer. */
  remove(requestId: string): Promise<boolean>;
  /** The worker that has a search; undefined while it waits, and once it has ended. @throws if Redis does not answer. */
  workerOf(requestId: string): Promise<string | undefined>;
}

interface Opening {
  connections: RedisConnections;
  metrics: Metrics;
  log: Log;
  shutdown: Shutdown;
}

interface Pending {
  job: SearchJob;
  turn: number;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Opens the queue for an API process, on a connection of its own: every pipeline of ioredis copies all scripts of its
 * connection, and BullMQ has many. Waits until Redis is reachable.
 */
export async function openSearchQueue({ connections, metrics, log, shutdown }: Opening): Promise<SearchQueue> {
  const connection = connections.openCommands("queue");
  await awaitReady(connection, "queue", log);
  const queue = createQueue(connection, {
    streams: { events: { maxLen: eventsMax } },
    skipWaitingForReady: true,
  });
  const warn = throttledWarning(log, "queue error");
  queue.on("error", (error) => {
    metrics.backgroundErrors.inc({ where: "queue" });
    warn(error);
  });
  shutdown.register("queue", () => queue.close());
  const run = async (batch: Pending[]) => {
    try {
      const jobs = batch.map(({ job, turn: priority }) => {
        return { name: "search", data: job, opts: { jobId: job.requestId, ...(priority > 0 && { priority }) } };
      });
      const [first] = jobs;
      // A job alone saves the pipeline, for which ioredis copies all scripts.
      if (first && jobs.length === 1) await queue.add(first.name, first.data, first.opts);
      else await queue.addBulk(jobs);
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  const batches = new Batcher<Pending>({ sizeMax: jobsPerBatchMax, concurrency: batchConcurrency, run });
  return {
    enqueue: (job, turn) => new Promise((resolve, reject) => batches.add({ job, turn, resolve, reject })),
    remove: async (requestId) => (await queue.remove(requestId)) === 1,
    workerOf: async (requestId) => (await connection.hget(queueKeys.job(requestId), jobWorkerField)) ?? undefined,
  };
}

/** Every worker that had the search died, or lost Redis for longer than the lock of a job lasts. */
export class WorkersLost extends Error {}

export interface SearchWorker {
  /** The searches that it runs. */
  running(): number;
  /** The most searches that it ran at once since it was asked last. */
  peak(): number;
  /** Sets how many it may run at once. Those beyond a lower number end normally. */
  setConcurrency(searches: number): void;
}

/**
 * Takes searches from the queue, as many at once as it may, until the process stops. Then it finishes what ends in time and
 * hands the rest back, for another worker to start at once. Waits until Redis is reachable.
 * @param handlers.run runs one search. The job fails if it rejects. `isRepeated`: another worker had it, or this one before.
 * @param handlers.failed gets a job that failed, or {@link WorkersLost} for one that lost too many workers; without `job` if
 *   it is not readable.
 * @param options.workerId the name of the worker in its jobs. @param options.concurrency searches at once, until it is set anew.
 * @throws if Redis refuses what BullMQ asks at first, as to a user who may not run INFO.
 */
export async function openSearchWorker(
  { connections, metrics, log, shutdown }: Opening,
  handlers: {
    run: (job: SearchJob, isRepeated: boolean) => Promise<void>;
    failed: (error: Error, requestId: string | undefined, job: SearchJob | undefined) => Promise<void>;
  },
  { workerId, concurrency }: { workerId: string; concurrency: number },
): Promise<SearchWorker> {
  const running = new InFlightEntries<{ job: Job; token: string | undefined }>();
  let peak = 0;
  const takePeak = () => {
    const seen = peak;
    peak = running.size;
    return seen;
  };
  const runJob = async (job: Job, token?: string) => {
    running.set(job.id ?? "", { job, token });
    peak = Math.max(peak, running.size);
    try {
      await handlers.run(searchJob.parse(job.data), job.attemptsStarted > 1);
    } finally {
      running.delete(job.id ?? "");
    }
  };
  const connection = connections.openBlocking("worker-queue");
  const worker = new Worker(queueName, runJob, {
    connection,
    prefix,
    name: workerId,
    concurrency,
    lockDuration: protocolTimes.jobLockMs,
    stalledInterval: protocolTimes.stallCheckIntervalMs,
    maxStalledCount: takeOversMax,
    drainDelay: drainDelaySeconds,
    autorun: false,
    ...keepJobs,
  });
  const warn = throttledWarning(log, "worker error");
  worker.on("error", (error) => {
    metrics.backgroundErrors.inc({ where: "worker" });
    warn(error);
  });
  worker.on("failed", (job, error) => {
    const cause = error.message === lostMessage ? new WorkersLost(lostMessage, { cause: error }) : error;
    void handlers.failed(cause, job?.id, searchJob.safeParse(job?.data).data);
  });
  shutdown.register("jobs", async () => {
    const { ended } = await waitFor(worker.close(), { timeoutMs: protocolTimes.jobDrainMs });
    if (ended === "done") return;
    // If this process still decides one of them, it decides the same as the worker that takes it over.
    await Promise.allSettled(
      running.values().map(async ({ job, token }) => {
        await job.moveToWait(token);
        // For a job with a turn, BullMQ leaves idle workers asleep; without this they look a second later.
        await connection.zadd(queueKeys.marker, 0, "0");
      }),
    );
  });
  // On a connection that was refused, BullMQ's loop would fail and repeat without a pause: the process would hear no signal.
  await worker.waitUntilReady();
  worker
    .run()
    .catch((error: unknown) => worker.emit("error", error instanceof Error ? error : new Error(String(error))));
  return {
    running: () => running.size,
    peak: takePeak,
    setConcurrency: (searches) => setConcurrency(worker, searches),
  };
}

function setConcurrency(worker: Worker, searches: number): void {
  worker.concurrency = searches;
  // BullMQ's loop looks at its concurrency only when a job ends, which may take seconds. An end without a job wakes it.
  worker["mainLoopQueue"]?.add(Promise.resolve(undefined));
}
