import { chmodSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { Client } from "pg";
import { startPostgres } from "../../../local/postgres.ts";
import { type LocalRedis, startRedis } from "../../../local/redis.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

/** Counters since the start of a Redis. */
export interface RedisCounters {
  /** Commands, those within scripts included. */
  commands: number;
  /** Reads from its connections' sockets; each wakes it once, whatever the number of commands in it. */
  reads: number;
  scriptUs: number;
  memoryBytes: number;
}

/** Starts a Postgres that syncs every commit to disk and counts its statements, with an extension that only a restart loads. */
export async function openPostgres(shutdown: Shutdown): Promise<LocalServer & { statements: () => Promise<number> }> {
  const guarded = await GuardedFolder.create("serpmill-bench-");
  shutdown.register("folder", () => guarded.remove());
  chmodSync(guarded.path, 0o755); // Postgres may run as another user, who needs access.
  const options = { folder: join(guarded.path, "postgres"), durable: true };
  const first = await startPostgres(options);
  try {
    await asOwner(first.url, "alter system set shared_preload_libraries = 'pg_stat_statements'");
  } finally {
    await first.stop();
  }
  const postgres = await startPostgres(options);
  shutdown.register("Postgres", postgres.stop);
  const client = new Client({ connectionString: postgres.url });
  client.on("error", () => undefined); // Only while the server stops.
  await client.connect();
  shutdown.register("connection to Postgres", () => client.end());
  await client.query("create extension pg_stat_statements");
  const statements = async () => {
    const text =
      "select coalesce(sum(calls), 0)::float8 as calls from pg_stat_statements where query !~ 'pg_stat_statements'";
    return Number((await client.query(text)).rows[0]?.calls);
  };
  return { ...postgres, statements };
}

/** A Redis that writes its append-only file every second, as in the compose file. The caller must stop it. */
export const openRedis = (): Promise<LocalRedis> => startRedis({ durable: true });

/** Reads the counters of a Redis through a connection that stays open. */
export function openRedisCounters(url: string, shutdown: Shutdown): () => Promise<RedisCounters> {
  const redis = new Redis(url);
  redis.on("error", () => undefined); // Only while the server stops.
  shutdown.register("connection to Redis", () => redis.disconnect());
  return async () => {
    const [stats, commands, memory] = [
      await redis.info("stats"),
      await redis.info("commandstats"),
      await redis.info("memory"),
    ];
    const scripts = [...commands.matchAll(/^cmdstat_(?:eval|evalsha|fcall):.*?\busec=(\d+)/gm)];
    return {
      commands: numberIn(stats, "total_commands_processed"),
      reads: numberIn(stats, "total_reads_processed"),
      scriptUs: scripts.reduce((total, [, us]) => total + Number(us), 0),
      memoryBytes: numberIn(memory, "used_memory"),
    };
  };
}

const numberIn = (info: string, name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(info)?.[1]);
