import type { Redis } from "ioredis";
import { Shutdown } from "../concurrency/shutdown.ts";
import type { Config } from "../config.ts";
import { type Database, databaseOf, openDatabase } from "../database/pool.ts";
import { type Log, openLog } from "../log.ts";
import { type Metrics, openMetrics } from "../metrics.ts";
import { shutdownStepMsWith } from "../protocol-times.ts";
import { Clock } from "../redis/clock.ts";
import { RedisConnections } from "../redis/connections.ts";
import { noTracing, type Tracing } from "../tracing/spans.ts";

/** What every process opens. Functions take the parts that they use. */
export interface Context {
  config: Config;
  log: Log;
  metrics: Metrics;
  shutdown: Shutdown;
  database: Database;
  /** For commands that need no connection of their own. */
  redis: Redis;
  connections: RedisConnections;
  clock: Clock;
  tracing: Tracing;
}

/** Opens what API, worker and the operator's commands share, without waiting for Postgres or Redis. Commands trace nothing. */
export function openContext(options: {
  config: Config;
  name: string;
  databaseSizeMax: number;
  connectTimeoutMs?: number;
  log?: Log;
}): Context {
  const { config, name } = options;
  const log = options.log ?? openLog({ name, level: config.LOG_LEVEL });
  const shutdown = new Shutdown(shutdownStepMsWith(config.SEARCH_DEADLINE_MS));
  const { databaseSizeMax: sizeMax, connectTimeoutMs } = options;
  const database = openDatabase({ ...databaseOf(config), name, sizeMax, connectTimeoutMs, log, shutdown });
  const sentinelLogin = { username: config.SENTINEL_USERNAME, password: config.SENTINEL_PASSWORD };
  const connections = new RedisConnections({ url: config.REDIS_URL, sentinelLogin, log, shutdown });
  const redis = connections.openCommands(name);
  const [metrics, clock, tracing] = [openMetrics(), new Clock(), noTracing];
  return { config, log, metrics, shutdown, database, redis, connections, clock, tracing };
}
