import type { Redis } from "ioredis";
import { z } from "zod";
import { protocolTimes } from "../protocol-times.ts";
import { queueName, queuePrefix } from "./search-queue.ts";

/**
 * What the workers can take: each reports itself once a second. Every API reads the reports once a second, and the queue
 * more often while searches come; both off the path of any search.
 */

const reportsKey = "workers";
const waitingKey = `${queuePrefix}:${queueName}:wait`;
const runningKey = `${queuePrefix}:${queueName}:active`;

const report = z.object({ concurrency: z.number(), runMs: z.number(), atMs: z.number() });
type Report = z.infer<typeof report>;

export async function writeHeartbeat(redis: Redis, workerId: string, own: Report): Promise<void> {
  await redis.hset(reportsKey, workerId, JSON.stringify(own));
  await redis.pexpire(reportsKey, protocolTimes.heartbeatRecordMs);
}

/** Forgets workers that died without withdrawing, so that the reports stay as many as there are workers. */
export async function removeStaleHeartbeats(redis: Redis, nowMs: number): Promise<void> {
  const silent = Object.entries(await redis.hgetall(reportsKey))
    .filter(([, text]) => nowMs - report.parse(JSON.parse(text)).atMs > protocolTimes.heartbeatRecordMs)
    .map(([workerId]) => workerId);
  if (silent.length > 0) await redis.hdel(reportsKey, ...silent);
}

export async function removeHeartbeat(redis: Redis, workerId: string): Promise<void> {
  await redis.hdel(reportsKey, workerId);
}

export interface WorkerCapacity {
  workers: number;
  /** Searches that all of them run at once. */
  slots: number;
  /** Searches that they can start in one millisecond, by what they last reported. */
  ratePerMs: number;
}

/** Reads the reports. @throws where Redis does not answer. */
export async function readWorkerCapacity(redis: Redis, nowMs: number): Promise<WorkerCapacity> {
  const active = Object.values(await redis.hgetall(reportsKey))
    .map((text) => report.parse(JSON.parse(text)))
    .filter((own) => nowMs - own.atMs < protocolTimes.heartbeatTimeoutMs);
  return {
    workers: active.length,
    slots: active.reduce((sum, own) => sum + own.concurrency, 0),
    ratePerMs: active.reduce((sum, own) => sum + own.concurrency / Math.max(own.runMs, 1), 0),
  };
}

/** Searches that wait for a worker, and those that a worker has. */
export interface Backlog {
  waiting: number;
  running: number;
}

/** Reads how long the queue is, in one round trip. @throws where Redis does not answer. */
export async function readBacklog(redis: Redis): Promise<Backlog> {
  const [waiting, running] = await Promise.all([redis.llen(waitingKey), redis.llen(runningKey)]);
  return { waiting, running };
}

/** The search that has waited longest, if any waits. */
export async function readOldestJobId(redis: Redis): Promise<string | undefined> {
  return (await redis.lindex(waitingKey, -1)) ?? undefined;
}
