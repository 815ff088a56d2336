import type { Redis } from "ioredis";
import { beyondShareScore, queueKeys, scorePerTurn } from "./search-queue.ts";

/** Readings of the queue. */

// The turns of searches do not say how old they are. More than these wait only where the APIs have to refuse searches.
const agedMax = 1_000;

/** Searches that wait for a worker, and searches that a worker runs. */
export interface Backlog {
  waiting: number;
  running: number;
  /** The turn that comes next, of the searches beyond the shares of their organizations; 0 if none waits. */
  turn: number;
}

/** Reads the length of the queue, in one round trip. @throws if Redis does not answer. */
export async function readBacklog(redis: Redis): Promise<Backlog> {
  const { waiting, waitingByTurn, running } = queueKeys;
  const [only, others, [, score = "0"], ran] = await Promise.all([
    redis.llen(waiting),
    redis.zcard(waitingByTurn),
    redis.zrangebyscore(waitingByTurn, beyondShareScore, "+inf", "WITHSCORES", "LIMIT", 0, 1),
    redis.llen(running),
  ]);
  return { waiting: only + others, running: ran, turn: Math.floor(Number(score) / scorePerTurn) };
}

/**
 * How long the oldest waiting search has waited, of the next thousand; 0 if none waits. @param nowMs by Redis' clock.
 */
export async function readOldestWaitMs(redis: Redis, nowMs: number): Promise<number> {
  const [only, others] = await Promise.all([
    redis.lrange(queueKeys.waiting, -agedMax, -1),
    redis.zrange(queueKeys.waitingByTurn, 0, `${agedMax - 1}`),
  ]);
  // Request ids are in the order of time.
  const [oldest] = [...only, ...others].toSorted();
  if (oldest === undefined) return 0;
  const enqueuedAtMs = Number(await redis.hget(queueKeys.job(oldest), "timestamp"));
  return enqueuedAtMs > 0 ? Math.max(0, nowMs - enqueuedAtMs) : 0;
}
