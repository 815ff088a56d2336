import type { Redis } from "ioredis";

/** Of maxmemory. Holds, jobs and replies need the rest: Redis must not refuse them. */
const usedShareMax = 0.6;

/** Whether Redis has memory for cached answers: below 60 % of maxmemory. Always true if maxmemory is not set. */
export async function hasCacheHeadroom(redis: Redis): Promise<boolean> {
  const info = await redis.info("memory");
  const bytesOf = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  const maxBytes = bytesOf("maxmemory");
  return maxBytes === 0 || bytesOf("used_memory") < maxBytes * usedShareMax;
}
