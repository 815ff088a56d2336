import { z } from "zod";
import type { Redis } from "ioredis";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readRedisRunId } from "./leadership.ts";
import { type Repairing, storeNextBalances } from "./reconcile.ts";

/**
 * The full resync stores the balance of every organization in Redis: without a leader for a while, or with a Redis that was
 * restarted from an old state, any copy may be old. Its progress is kept in Redis and expires only if no worker leads for a
 * minute. So a run of maintenance does a part of it and then its other steps, the next run goes on from there, in this
 * worker or in the next leader, and a lost lease never makes a worker begin it again.
 */

/** The key in Redis under which the progress is kept. */
export const progressKey = "resync";
const partMs = 1_000;

/** For which run of Redis, behind which organization it goes on, and whether it is done. */
const progress = z.object({ runId: z.string(), after: z.string(), done: z.boolean() });
type Progress = z.infer<typeof progress>;

/**
 * Goes on with the full resync for about a second, unless it is done.
 * @param leads renews the lease and tells whether this worker still has it. It is asked before each page.
 */
export async function continueResync(context: Repairing, leads: () => Promise<boolean>): Promise<void> {
  const { redis, log } = context;
  const before = await readProgress(redis);
  let at = before;
  const untilMs = performance.now() + partMs;
  while (!at.done && performance.now() < untilMs && (await leads())) {
    at = { runId: at.runId, ...(await storeNextBalances(context, at.after)) };
    // Written even if the lease was lost meanwhile: the page is stored, and the next leader need not store it again.
    await keep(redis, at);
  }
  if (at.done !== before.done) log.info({ redisRunId: at.runId }, "stored the balances of all organizations in Redis");
  if (before.done) await keep(redis, before);
}

async function readProgress(redis: Redis): Promise<Progress> {
  const [runId, kept] = [await readRedisRunId(redis), await redis.get(progressKey)];
  const known = kept ? progress.parse(JSON.parse(kept)) : undefined;
  return known?.runId === runId ? known : { runId, after: "", done: false };
}

async function keep(redis: Redis, at: Progress): Promise<void> {
  await redis.set(progressKey, JSON.stringify(at), "PX", protocolTimes.resyncRecordMs);
}
