import { type ChainableCommander, type Redis, ReplyError } from "ioredis";
import { retryWhile } from "../concurrency/retry.ts";
import { waitFor } from "../concurrency/wait-for.ts";
import { reasonOf, redisOutOfReach } from "../config/out-of-reach.ts";
import { StartRefused } from "../config/start-refused.ts";
import type { Log } from "../log.ts";

const readyWarningIntervalMs = 2_000;
const clusterRetryAfterMs = 500;

/**
 * Whether a failed command may have run all the same: true for timeouts and broken connections, false if Redis refused it
 * (out of memory, read-only, still loading) or it was never sent.
 */
export function mayHaveRun(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if (/^(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|NOAUTH|NOPERM|CLUSTERDOWN|MASTERDOWN|BUSY) /.test(error.message))
    return false;
  return !error.message.startsWith("Stream isn't writeable");
}

/** Waits until a connection takes commands, however long that is, and logs a warning every two seconds. */
export async function awaitReady(redis: Redis, name: string, log: Log): Promise<void> {
  while (!(await whenReady(redis, readyWarningIntervalMs))) log.warn({ connection: name }, "still waiting for Redis");
}

/** Waits until a connection takes commands. @returns false at the timeout. */
export async function whenReady(redis: Redis, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") return true;
  const ready = Promise.withResolvers<void>();
  redis.once("ready", ready.resolve);
  const { ended } = await waitFor(ready.promise, { timeoutMs });
  redis.off("ready", ready.resolve);
  return ended === "done";
}

/** Waits until Redis takes commands. @throws {OutOfReach} at the timeout. @throws {StartRefused} like {@link refuseUnfit}. */
export async function requireReady(redis: Redis, url: string, timeoutMs: number): Promise<void> {
  let reason = "no answer";
  const note = (error: Error) => (reason = reasonOf(error));
  redis.on("error", note);
  const isReady = await whenReady(redis, timeoutMs);
  redis.off("error", note);
  if (!isReady) throw redisOutOfReach(url, reason);
  await refuseUnfit(redis);
}

const clusterRefusal =
  "REDIS_URL leads to a Redis Cluster, which keeps the keys of one search on different nodes: use one Redis or Valkey instead, with its replicas behind one address (docs/operating/datastores.md).";

/** Waits until Redis takes commands, however long that is. @throws {StartRefused} like {@link refuseUnfit}. */
export async function awaitSingleRedis(redis: Redis, name: string, log: Log): Promise<void> {
  const mayRetry = (error: unknown) => !(error instanceof StartRefused);
  await retryWhile({ pauseMs: clusterRetryAfterMs, mayRetry }, async () => {
    await awaitReady(redis, name, log);
    await refuseUnfit(redis);
  });
}

/**
 * On a cluster a connection is ready, simple commands may work, and every search fails. A user who may not read INFO is
 * believed to have one Redis. Where the database of the address does not exist, ioredis stays in the database 0, which may be
 * that of another service.
 * @throws {StartRefused} if it is a Redis Cluster, or lacks the database.
 */
export async function refuseUnfit(redis: Redis): Promise<void> {
  const { db = 0 } = redis.options;
  const selected = db === 0 ? "" : await redis.select(db).catch(refusalOf);
  if (/out of range/.test(selected))
    throw new StartRefused(`REDIS_URL names the database ${db}, which this Redis does not have.`);
  const info = await redis.info("cluster").catch(refusalOf);
  if (/^cluster_enabled:1\r?$/m.test(info)) throw new StartRefused(clusterRefusal);
}

/** Why Redis refuses a command. @throws any other error, and what is for now only: Redis is busy with a script, or loads its data. */
function refusalOf(error: unknown): string {
  const isRefused = error instanceof Error && error instanceof ReplyError;
  if (isRefused && !/^(BUSY|LOADING|MASTERDOWN) /.test(error.message)) return error.message;
  throw error;
}

/** Sends a pipeline and returns the replies in order. @throws the first error of a command, or of the connection. */
export async function execPipeline(pipeline: ChainableCommander): Promise<unknown[]> {
  const results = (await pipeline.exec()) ?? [];
  return results.map(([error, reply]) => {
    if (error) throw error;
    return reply;
  });
}
