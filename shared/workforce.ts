import type { Redis } from "ioredis";
import { z } from "zod";
import { queueName, queuePrefix } from "./queue.ts";

/**
 * What the workers can take: each reports itself once a second, and every API reads the reports and the queue once a
 * second, off the path of any search.
 */

export const reportEveryMs = 1_000;
/** How long after its last report a worker counts as gone. */
export const silentAfterMs = 5_000;
const reportsLiveMs = 60_000;
const reportsKey = "workers";
const waitKey = `${queuePrefix}:${queueName}:wait`;

const report = z.object({ concurrency: z.number(), runMs: z.number(), atMs: z.number() });
type Report = z.infer<typeof report>;

export async function reportWorker(redis: Redis, workerId: string, own: Report): Promise<void> {
  await redis.hset(reportsKey, workerId, JSON.stringify(own));
  await redis.pexpire(reportsKey, reportsLiveMs);
}

/** Forgets workers that died without withdrawing, so that the reports stay as many as there are workers. */
export async function forgetSilentWorkers(redis: Redis, nowMs: number): Promise<void> {
  const silent = Object.entries(await redis.hgetall(reportsKey))
    .filter(([, text]) => nowMs - report.parse(JSON.parse(text)).atMs > reportsLiveMs)
    .map(([workerId]) => workerId);
  if (silent.length > 0) await redis.hdel(reportsKey, ...silent);
}

export async function withdrawWorker(redis: Redis, workerId: string): Promise<void> {
  await redis.hdel(reportsKey, workerId);
}

export interface Workforce {
  workers: number;
  queueDepth: number;
  /** How long a search that is enqueued now will wait for a worker, by what the workers last reported. */
  expectedWaitMs: number;
  oldestJobId: string | undefined;
}

/** Reads queue and reports in one round trip. @throws where Redis does not answer. */
export async function readWorkforce(redis: Redis, nowMs: number): Promise<Workforce> {
  const [queueDepth, oldestJobId, reports] = await Promise.all([
    redis.llen(waitKey),
    redis.lindex(waitKey, -1),
    redis.hgetall(reportsKey),
  ]);
  const active = Object.values(reports)
    .map((text) => report.parse(JSON.parse(text)))
    .filter((own) => nowMs - own.atMs < silentAfterMs);
  // Searches that the workers can start in one millisecond.
  const ratePerMs = active.reduce((sum, own) => sum + own.concurrency / Math.max(own.runMs, 1), 0);
  return {
    workers: active.length,
    queueDepth,
    expectedWaitMs: ratePerMs > 0 ? queueDepth / ratePerMs : Number.POSITIVE_INFINITY,
    oldestJobId: oldestJobId ?? undefined,
  };
}
