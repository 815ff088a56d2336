import type { Redis } from "ioredis";
import { z } from "zod";
import { queueKeys } from "../../../shared/queue/search-queue.ts";

// In one script, because a job on its way from one list to the other would be counted twice or not at all.
const lengthsScript =
  'return { redis.call("LLEN", KEYS[1]) + redis.call("ZCARD", KEYS[2]), redis.call("LLEN", KEYS[3]) }';
const lengths = z.tuple([z.number(), z.number()]);

/** Searches that wait in the queue, and searches that workers run, both at one moment. */
export async function readBacklog(redis: Redis): Promise<{ waiting: number; running: number }> {
  const keys = [queueKeys.waiting, queueKeys.waitingByTurn, queueKeys.running];
  const [waiting, running] = lengths.parse(await redis.eval(lengthsScript, keys.length, ...keys));
  return { waiting, running };
}
