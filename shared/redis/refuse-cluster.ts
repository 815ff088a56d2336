import { type Redis, ReplyError } from "ioredis";
import { retryWhile } from "../concurrency/retry.ts";
import type { Log } from "../log.ts";
import { StartRefused } from "../config/start-refused.ts";
import { awaitReady } from "./connect.ts";

const retryAfterMs = 500;

const sentence =
  "REDIS_URL leads to a Redis Cluster, which keeps the keys of one search on different nodes: use one Redis or Valkey instead, with its replicas behind one address (docs/operating/datastores.md).";

/** Waits until Redis takes commands, however long that is. @throws {StartRefused} if it is a Redis Cluster. */
export async function awaitSingleRedis(redis: Redis, name: string, log: Log): Promise<void> {
  const mayRetry = (error: unknown) => !(error instanceof StartRefused);
  await retryWhile({ pauseMs: retryAfterMs, mayRetry }, async () => {
    await awaitReady(redis, name, log);
    await refuseCluster(redis);
  });
}

/**
 * On a cluster a connection is ready, simple commands may work, and every search fails. A user who may not read INFO is
 * believed to have one Redis.
 * @throws {StartRefused} if it is a Redis Cluster.
 */
export async function refuseCluster(redis: Redis): Promise<void> {
  const info = await redis.info("cluster").catch((error: unknown) => {
    const isRefused = error instanceof Error && error instanceof ReplyError;
    // These are for now only: Redis is busy with a script, or loads its data.
    if (isRefused && !/^(BUSY|LOADING|MASTERDOWN) /.test(error.message)) return "";
    throw error;
  });
  if (/^cluster_enabled:1\r?$/m.test(info)) throw new StartRefused(sentence);
}
