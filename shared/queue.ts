import { type JobsOptions, Queue } from "bullmq";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { Closing } from "./closing.ts";
import { type Log, throttledWarning } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { querySchema } from "./query.ts";

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

export function openQueue(options: { redis: Redis; log: Log; metrics: Metrics; closing: Closing }): Queue {
  const queue = new Queue(queueName, {
    connection: options.redis,
    prefix: queuePrefix,
    defaultJobOptions: jobOptions,
    streams: { events: { maxLen: eventsMax } },
    skipWaitingForReady: true,
  });
  const warn = throttledWarning(options.log, "the queue has a problem");
  queue.on("error", (error) => {
    options.metrics.backgroundErrors.inc({ where: "queue" });
    warn(error);
  });
  options.closing.push("queue", () => queue.close());
  return queue;
}

/** Enqueues a search under its request id, so that a second enqueueing of a waiting search changes nothing. */
export async function enqueueSearch(queue: Queue, job: SearchJob): Promise<void> {
  await queue.add("search", job, { jobId: job.requestId });
}
