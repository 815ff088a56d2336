import { type JobsOptions, Queue } from "bullmq";
import { z } from "zod";
import { Batcher } from "../concurrency/batcher.ts";
import type { Context } from "../context.ts";
import { throttledWarning } from "../log.ts";
import { querySchema } from "../query/query.ts";
import { openCommands, whenReady } from "../redis/connect.ts";

export const queueName = "searches";
/** A hash tag, so that all keys of the queue share a slot on a cluster. */
export const queuePrefix = "{serpmill}";

/** What travels to the worker: the request, never the answer, and nothing secret. */
export const searchJob = z.object({
  requestId: z.string(),
  organizationId: z.string(),
  query: querySchema,
  /** The price that is held, in mils; 0 where the key has paid already. */
  priceMils: z.number(),
  /** What could still be spent once the search was admitted, in mils. */
  remainingMils: z.number(),
  /** By Redis' clock. Past it the engine is not asked any more. */
  deadlineAtMs: z.number(),
  enqueuedAtMs: z.number(),
  /** What the caller was given, in milliseconds, for the answer that says so. */
  timeoutMs: z.number(),
  /** The stream of the API process that waits. */
  inbox: z.string(),
  key: z.object({ hash: z.string(), fingerprint: z.string() }).optional(),
});
export type SearchJob = z.infer<typeof searchJob>;

const jobOptions: JobsOptions = {
  // A search that went wrong is refunded and answered, not run again; only a dead worker's job is taken over.
  attempts: 1,
  removeOnComplete: true,
  removeOnFail: { age: 3_600, count: 1_000 },
  sizeLimit: 64 * 1024,
  stackTraceLimit: 5,
};

// Nobody reads BullMQ's event stream here; it cannot be switched off, only kept short.
const eventsMax = 1_000;
const connectionAwaitedMs = 5_000;

/** Opens the queue on a connection of its own: every pipeline of ioredis copies all scripts of its connection, and BullMQ has many. */
export async function openQueue(options: Context): Promise<Queue> {
  const { config, log, shutdown } = options;
  const connection = openCommands({ url: config.REDIS_URL, name: "queue", log, shutdown });
  while (!(await whenReady(connection, connectionAwaitedMs))) log.warn("the queue is still waiting for Redis");
  const queue = new Queue(queueName, {
    connection,
    prefix: queuePrefix,
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: eventsMax } },
    skipWaitingForReady: true,
  });
  const warn = throttledWarning(log, "the queue has a problem");
  queue.on("error", (error) => {
    options.metrics.backgroundErrors.inc({ where: "queue" });
    warn(error);
  });
  shutdown.register("queue", () => queue.close());
  return queue;
}

const jobsAtOnceMax = 128;
const batchesAtOnceMax = 2;

/**
 * Enqueues a search under its request id, so that a second enqueueing of a waiting search changes nothing.
 * @throws where Redis did not confirm it; the search may be in the queue all the same.
 */
export type Enqueue = (job: SearchJob) => Promise<void>;

interface Pending {
  job: SearchJob;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** Searches that become ready together are enqueued in one round trip. */
export function openEnqueue(queue: Queue): Enqueue {
  const run = async (batch: Pending[]) => {
    try {
      await queue.addBulk(batch.map(({ job }) => ({ name: "search", data: job, opts: { jobId: job.requestId } })));
      for (const { resolve } of batch) resolve();
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  };
  const batches = new Batcher<Pending>({ sizeMax: jobsAtOnceMax, atOnceMax: batchesAtOnceMax, run });
  return (job) => new Promise((resolve, reject) => batches.add({ job, resolve, reject }));
}
