import { setTimeout as sleep } from "node:timers/promises";
import { processUrlOf } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { type PostgresPair, startPostgresPair } from "../../harness/servers/postgres-pair.ts";
import { startPostgresProxy } from "../../harness/servers/postgres-proxy.ts";
import type { Failover, PreparedFailover } from "./failover.ts";

const outageMsMax = 2_000;
/** How far the standby lags behind. */
const lagMs = 3_000;
/** What waited ends first, and then the queue. */
const backMsMax = 10_000;
/** Longer than a search may take, and than a process waits for a query. */
const awayMs = 30_000;
/** No arbiter takes a server for dead that has been silent for less. */
const silentMs = 3_000;

async function open(
  shutdown: Shutdown,
  options: { isSynchronous: boolean; begin: (pair: PostgresPair) => Promise<number> },
): Promise<PreparedFailover> {
  const redis = await startRedis();
  shutdown.register("Redis", () => redis.stop());
  const pair = await startPostgresPair(options);
  shutdown.register("Postgres", () => pair.close());
  const proxy = await startPostgresProxy(pair);
  shutdown.register("HAProxy", () => proxy.close());
  const { url: databaseUrl } = await freshDatabaseIn(proxy.url);
  const settings = () => ({ REDIS_URL: redis.url, DATABASE_URL: processUrlOf(databaseUrl) });
  return { stores: { settings, databaseUrl, redis }, steps: [{ begin: () => options.begin(pair) }] };
}

export const postgresFailovers: readonly Failover[] = [
  {
    name: "postgres-killed",
    what: "the primary of Postgres is killed, and its synchronous standby promoted; through HAProxy",
    outageMsMax,
    since: "recovery",
    open: (shutdown) => open(shutdown, { isSynchronous: true, begin: (pair) => (pair.killPrimary(), pair.promote()) }),
  },
  {
    name: "postgres-frozen",
    what: `the primary of Postgres answers nothing any more, and its synchronous standby is promoted after ${silentMs / 1_000} s; through HAProxy`,
    outageMsMax,
    since: "recovery",
    open: (shutdown) =>
      open(shutdown, {
        isSynchronous: true,
        begin: async (pair) => {
          pair.freezePrimary();
          await sleep(silentMs);
          return pair.promote();
        },
      }),
  },
  {
    name: "postgres-standby-away",
    what: `the only synchronous standby of Postgres does not answer for ${awayMs / 1_000} s, and nothing is promoted; through HAProxy`,
    outageMsMax: backMsMax,
    since: "recovery",
    open: (shutdown) =>
      open(shutdown, {
        isSynchronous: true,
        begin: async ({ replication }) => {
          replication.silence("requests", "replies");
          await sleep(awayMs);
          replication.mend();
          return performance.now();
        },
      }),
  },
  {
    name: "postgres-lagging",
    what: `the primary of Postgres is killed, and a standby promoted by hand that is ${lagMs / 1_000} s behind; through HAProxy`,
    outageMsMax,
    since: "recovery",
    losesEntries: true,
    open: (shutdown) =>
      open(shutdown, {
        isSynchronous: false,
        begin: async (pair) => {
          pair.replication.silence("replies");
          await sleep(lagMs);
          pair.killPrimary();
          return pair.promote();
        },
      }),
  },
];
