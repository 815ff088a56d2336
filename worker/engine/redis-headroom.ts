import type { Redis } from "ioredis";
import { readMemory } from "../../shared/redis/memory.ts";

// Of maxmemory. Holds, jobs and replies need the rest: Redis must not refuse them. Raw answers leave room for the cache.
const cacheShareMax = 0.6;
const rawAnswerShareMax = 0.4;

/** Whether Redis has memory for cached answers: below 60 % of maxmemory. Always true if maxmemory is not set. */
export const hasCacheHeadroom = (redis: Redis): Promise<boolean> => usesLess(redis, cacheShareMax);

/** Whether Redis has memory for raw answers: below 40 % of maxmemory. Always true if maxmemory is not set. */
export const hasRawAnswerHeadroom = (redis: Redis): Promise<boolean> => usesLess(redis, rawAnswerShareMax);

async function usesLess(redis: Redis, shareMax: number): Promise<boolean> {
  const { usedBytes, limitBytes } = await readMemory(redis);
  return limitBytes === 0 || usedBytes < limitBytes * shareMax;
}
