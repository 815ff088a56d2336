import type { Redis } from "ioredis";
import { z } from "zod";
import { type ProviderName, providerNames } from "../config.ts";
import { protocolTimes } from "../protocol-times.ts";

/**
 * What the workers can take. Each worker writes a heartbeat once a second, and each API reads all of them once a second,
 * off the path of any search.
 */

const heartbeatsKey = "workers";

const heartbeat = z.object({
  concurrency: z.number(),
  /** The slots that it can raise them to. */
  slotsCeiling: z.number(),
  /** The providers that it asks. Undefined if one of a later release is among them. */
  providers: z.array(z.enum(providerNames)).optional().catch(undefined),
  runMs: z.number(),
  reachesPostgres: z.boolean(),
  atMs: z.number(),
});
/** A worker's slots and providers, its average time for a search, and whether it reaches Postgres; `atMs` by Redis' clock. */
type Heartbeat = z.infer<typeof heartbeat>;

export async function writeHeartbeat(redis: Redis, workerId: string, own: Heartbeat): Promise<void> {
  await Promise.all([
    redis.hset(heartbeatsKey, workerId, JSON.stringify(own)),
    redis.pexpire(heartbeatsKey, protocolTimes.heartbeatRecordMs),
  ]);
}

/** Deletes the heartbeats of workers that died, so that there are as many as workers. @param nowMs by Redis' clock. */
export async function removeStaleHeartbeats(redis: Redis, nowMs: number): Promise<void> {
  const stale = [...(await readHeartbeats(redis))]
    .filter(([, { atMs }]) => nowMs - atMs > protocolTimes.heartbeatRecordMs)
    .map(([workerId]) => workerId);
  if (stale.length > 0) await redis.hdel(heartbeatsKey, ...stale);
}

export async function removeHeartbeat(redis: Redis, workerId: string): Promise<void> {
  await redis.hdel(heartbeatsKey, workerId);
}

export interface WorkerCapacity {
  workers: number;
  /** Searches that all of them run at once. */
  slots: number;
  /** Searches that all of them can run at once when they have raised their slots, which double every `slotDoublingMs`. */
  slotsCeiling: number;
  /** Searches that they can start in one millisecond, by their latest heartbeats. */
  ratePerMs: number;
  /** The providers that any of them asks. Undefined without workers, or if those of one are unknown. */
  providers: readonly ProviderName[] | undefined;
  /** Whether any of them reached Postgres when it last reported. */
  reachesPostgres: boolean;
}

/** Sums up the workers with a recent heartbeat. @param nowMs by Redis' clock. @throws if Redis does not answer. */
export async function readWorkerCapacity(redis: Redis, nowMs: number): Promise<WorkerCapacity> {
  const alive = [...(await readHeartbeats(redis)).values()].filter((own) => isRecent(own, nowMs));
  return {
    workers: alive.length,
    slots: alive.reduce((sum, own) => sum + own.concurrency, 0),
    slotsCeiling: alive.reduce((sum, own) => sum + own.slotsCeiling, 0),
    ratePerMs: alive.reduce((sum, own) => sum + own.concurrency / Math.max(own.runMs, 1), 0),
    providers: providersOf(alive),
    reachesPostgres: alive.some((own) => own.reachesPostgres),
  };
}

/** Whether another worker reached Postgres when it last reported. @param nowMs by Redis' clock. @throws if Redis does not answer. */
export async function anotherReachesPostgres(redis: Redis, workerId: string, nowMs: number): Promise<boolean> {
  const others = [...(await readHeartbeats(redis))].filter(([id]) => id !== workerId);
  return others.some(([, own]) => own.reachesPostgres && isRecent(own, nowMs));
}

const isRecent = ({ atMs }: Heartbeat, nowMs: number) => nowMs - atMs < protocolTimes.heartbeatTimeoutMs;

function providersOf(workers: readonly Heartbeat[]): ProviderName[] | undefined {
  const known = workers.flatMap(({ providers }) => (providers ? [providers] : []));
  return known.length === 0 || known.length < workers.length ? undefined : [...new Set(known.flat())];
}

async function readHeartbeats(redis: Redis): Promise<Map<string, Heartbeat>> {
  const texts = Object.entries(await redis.hgetall(heartbeatsKey));
  return new Map(texts.map(([workerId, text]) => [workerId, heartbeat.parse(JSON.parse(text))]));
}
