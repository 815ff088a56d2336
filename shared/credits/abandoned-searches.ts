import type { Redis } from "ioredis";
import { keysOf } from "./redis-keys.ts";

/** Whether a search is counted as abandoned: its caller hung up while a worker had it. @throws if Redis does not answer. */
export async function isCountedAbandoned(redis: Redis, organizationId: string, requestId: string): Promise<boolean> {
  return (await redis.zscore(keysOf(organizationId).abandoned, requestId)) !== null;
}
