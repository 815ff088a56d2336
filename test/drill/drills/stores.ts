import { z } from "zod";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { Drill } from "../drill.ts";
import type { DrillStack } from "../drill-stack.ts";

const ballastBytes = 1_000_000; // With Redis' header it takes a MiB.
const maxmemory = z.tuple([z.string(), z.coerce.number()]);

/** Fills a share of Redis' memory. @returns a function that frees it. */
async function fillRedis({ service: { redis } }: DrillStack, share: number): Promise<() => Promise<void>> {
  const [, bytesMax] = maxmemory.parse(await redis.config("GET", "maxmemory"));
  const keys = Array.from({ length: Math.ceil((bytesMax * share) / ballastBytes) }, (_, n) => `ballast:${n}`);
  for (const key of keys) await redis.set(key, Buffer.alloc(ballastBytes));
  return async () => void (await redis.del(keys));
}

/** Lowers the memory limit of Redis below its use, so that it refuses writes. @returns a function that restores it. */
async function overfillRedis({ service: { redis } }: DrillStack): Promise<() => Promise<void>> {
  const [name, bytesMax] = maxmemory.parse(await redis.config("GET", "maxmemory"));
  await redis.config("SET", name, "1mb");
  return async () => void (await redis.config("SET", name, bytesMax));
}

/** Has each commit wait for a standby of this name, which there is not; none with "". */
async function waitForStandby(databaseUrl: string, name: string): Promise<void> {
  await asOwner(databaseUrl, async (owner) => {
    await owner.query(`alter system set synchronous_standby_names = '${name}'`);
    await owner.query("select pg_reload_conf()");
  });
}

export const storeDrills: readonly Drill[] = [
  {
    name: "postgres-away",
    outage: "Postgres is killed",
    isTotal: true,
    expects: ["PostgresUnreachable", "SearchesFail"],
    begin: async ({ postgres }) => {
      await postgres.kill();
      return () => postgres.restart();
    },
  },
  {
    name: "standby-away",
    outage: "the only synchronous standby of Postgres is away, so that every commit waits",
    isTotal: true,
    expects: ["SearchesFail"],
    begin: async ({ service }) => {
      await waitForStandby(service.databaseUrl, "standby_1");
      return () => waitForStandby(service.databaseUrl, "");
    },
  },
  {
    name: "redis-away",
    outage: "Redis is killed and comes back empty",
    isTotal: true,
    expects: ["RedisUnreachable", "SearchesFail"],
    begin: async ({ service }) => {
      service.redisServer.kill("SIGKILL");
      return () => service.restartRedis(service.redisServer.port);
    },
  },
  {
    name: "redis-full",
    outage: "Redis has used up its memory",
    isTotal: true,
    expects: ["RedisMemoryFull", "SearchesFail", "ProcessNotReady"],
    begin: overfillRedis,
  },
  {
    name: "redis-filling",
    outage: "Redis uses more than three quarters of its memory",
    expects: ["RedisMemoryHigh"],
    withinMs: 900_000,
    begin: (stack) => fillRedis(stack, 0.72),
  },
];
