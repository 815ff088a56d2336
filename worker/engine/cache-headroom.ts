import type { Redis } from "ioredis";

/** Of the memory that Redis may use: the rest is for holds, jobs and answers on their way, which it must not refuse. */
const shareMax = 0.6;

/** Whether Redis has room for answers that are merely kept. One that has no limit always has, as far as it tells. */
export async function hasCacheHeadroom(redis: Redis): Promise<boolean> {
  const told = await redis.info("memory");
  const bytesOf = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(told)?.[1] ?? 0);
  const limit = bytesOf("maxmemory");
  return limit === 0 || bytesOf("used_memory") < limit * shareMax;
}
