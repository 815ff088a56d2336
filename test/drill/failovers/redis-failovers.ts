import { startPostgres } from "../../../local/postgres.ts";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { freshDatabaseIn } from "../../harness/servers/fresh-database.ts";
import { startProxy } from "../../harness/servers/proxy.ts";
import { type PairedRedis, type RedisPair, startRedisPair } from "../../harness/servers/redis-pair.ts";
import { startRedisProxy } from "../../harness/servers/redis-proxy.ts";
import { usualPasswords } from "../../harness/servers/redis-users.ts";
import { type Sentinels, startSentinels } from "../../harness/servers/sentinels.ts";
import type { Failover, FailoverStep } from "./failover.ts";
import type { Stores } from "./stores.ts";

const unplannedMsMax = 10_000;
const plannedMsMax = 2_000;

/** How processes find the primary. */
const ways = {
  sentinels: "through Sentinels",
  haproxy: "through HAProxy",
  address: "by an address that moves and closes no connection",
} as const;
type Way = keyof typeof ways;
const everyWay: readonly Way[] = ["sentinels", "haproxy", "address"];

/** A primary and its replica, and what leads to the primary. */
interface RedisStores {
  stores: Stores;
  old: PairedRedis;
  next: PairedRedis;
  /** Undefined if an operator promotes the replica. */
  sentinels: Sentinels | undefined;
  /** Waits until the replica is the primary, and moves the addresses there. */
  promoted: () => Promise<undefined>;
}

async function openRedisStores(way: Way, isWatched: boolean, shutdown: Shutdown): Promise<RedisStores> {
  const postgres = await startPostgres();
  shutdown.register("Postgres", () => postgres.stop());
  const { url: databaseUrl } = await freshDatabaseIn(postgres.url);
  const pair = await startRedisPair();
  shutdown.register("Redis", () => pair.close());
  const [old, next] = pair.servers;
  const sentinels = isWatched ? await startSentinels(old) : undefined;
  if (sentinels) shutdown.register("Sentinels", () => sentinels.close());
  // The auditor's own address has no share in what is measured.
  const [address, audited] = [await startProxy(old.url), await startProxy(old.url)];
  shutdown.register("addresses", () => Promise.all([address.close(), audited.close()]));
  const url = way === "haproxy" ? await proxyOf(pair, shutdown) : address.url;
  const settings = (kind: "api" | "worker") => ({
    ...(way === "sentinels" && sentinels ? sentinels.settings(kind) : { REDIS_URL: loginAt(url, kind) }),
    DATABASE_URL: processUrlOf(databaseUrl),
  });
  const promoted = async () => {
    await eventually(async () => (await roleOf(next)) === "master");
    for (const { lead } of [address, audited]) lead(next.url);
    audited.reset();
    return undefined;
  };
  return { stores: { settings, databaseUrl, redis: { ...old, url: audited.url } }, old, next, sentinels, promoted };
}

async function proxyOf(pair: RedisPair, shutdown: Shutdown): Promise<string> {
  const proxy = await startRedisProxy(pair);
  shutdown.register("HAProxy", () => proxy.close());
  return proxy.url;
}

function loginAt(url: string, username: "api" | "worker"): string {
  const password = usualPasswords[username === "api" ? "REDIS_API_PASSWORD" : "REDIS_WORKER_PASSWORD"];
  return Object.assign(new URL(url), { username, password }).href;
}

const roleOf = async ({ operator }: PairedRedis) => String((await operator.role())[0]);
const demoted = (server: PairedRedis) => eventually(async () => (await roleOf(server)) === "slave");

/** What happens to Redis, for each way. */
interface RedisCase {
  name: string;
  what: string;
  ways: readonly Way[];
  outageMsMax: number;
  /** Whether Sentinels watch the pair. By default they do. */
  isWatched?: (way: Way) => boolean;
  steps: (redis: RedisStores) => FailoverStep[];
}

const cases: readonly RedisCase[] = [
  {
    name: "redis-killed",
    what: "the primary of Redis is killed",
    ways: everyWay,
    outageMsMax: unplannedMsMax,
    steps: ({ old, promoted }) => [{ begin: () => (old.kill("SIGKILL"), promoted()) }],
  },
  {
    name: "redis-frozen",
    what: "the primary of Redis answers nothing any more",
    ways: everyWay,
    outageMsMax: unplannedMsMax,
    steps: ({ old, promoted }) => [
      { begin: () => (old.kill("SIGSTOP"), promoted()) },
      { what: "once it runs again", begin: async () => (old.kill("SIGCONT"), await demoted(old), undefined) },
    ],
  },
  {
    name: "redis-cut-off",
    what: "the primary of Redis is cut off from its replica and the Sentinels, and still reached by the processes",
    ways: everyWay,
    outageMsMax: unplannedMsMax,
    steps: ({ old, promoted }) => [
      { begin: () => allow(old, "off").then(promoted) },
      {
        what: "once it is reached again",
        begin: () =>
          allow(old, "on")
            .then(() => demoted(old))
            .then(() => undefined),
      },
    ],
  },
  {
    name: "redis-switched-over",
    what: "an operator switches over to the replica of Redis",
    ways: everyWay,
    outageMsMax: plannedMsMax,
    isWatched: (way) => way === "sentinels",
    steps: ({ old, sentinels, promoted }) => [
      { begin: () => (sentinels ? sentinels.switchOver() : old.operator.call("FAILOVER")).then(promoted) },
    ],
  },
  {
    name: "redis-demoted",
    what: "the primary of Redis is demoted and cannot follow the new one",
    ways: ["haproxy", "address"], // Sentinels would correct it.
    outageMsMax: plannedMsMax,
    isWatched: () => false,
    steps: ({ old, next, promoted }) => [
      {
        begin: async () => {
          await old.operator.config("SET", "masterauth", "wrong");
          await next.operator.replicaof("no", "one");
          await promoted();
          await old.operator.replicaof("127.0.0.1", next.port);
          return undefined;
        },
      },
    ],
  },
  {
    name: "redis-sentinel-frozen",
    what: "a Sentinel answers nothing any more, and the primary of Redis is killed",
    ways: ["sentinels"],
    outageMsMax: unplannedMsMax,
    steps: ({ old, sentinels, promoted }) => [
      { begin: () => (sentinels?.servers[0]?.kill("SIGSTOP"), old.kill("SIGKILL"), promoted()) },
    ],
  },
  {
    name: "redis-sentinels-lost",
    what: "all Sentinels are killed",
    ways: ["sentinels"],
    outageMsMax: plannedMsMax,
    steps: ({ old, sentinels }) => [
      {
        begin: async () => {
          for (const server of sentinels?.servers ?? []) server.kill("SIGKILL");
          await Promise.all((sentinels?.servers ?? []).map(({ exited }) => exited));
          return undefined;
        },
      },
      {
        what: "once Redis closes each connection",
        begin: () => old.operator.call("CLIENT", "KILL", "TYPE", "normal").then(() => undefined),
      },
    ],
  },
];

/** Whether a primary lets its replica and the Sentinels in: the network between them alone is cut. */
async function allow({ operator }: PairedRedis, state: "on" | "off"): Promise<void> {
  // Without a login they would be the default user. The operator's own connection stays.
  await operator.call("ACL", "SETUSER", "default", state);
  for (const user of ["replica", "sentinel"]) {
    await operator.call("ACL", "SETUSER", user, state);
    if (state === "off") await operator.call("CLIENT", "KILL", "USER", user);
  }
}

export const redisFailovers: readonly Failover[] = cases.flatMap(({ isWatched = () => true, ...redis }) =>
  redis.ways.map(
    (way): Failover => ({
      name: redis.ways.length === 1 ? redis.name : `${redis.name}-${way}`,
      what: `${redis.what}; ${ways[way]}`,
      outageMsMax: redis.outageMsMax,
      since: "outage",
      open: async (shutdown) => {
        const opened = await openRedisStores(way, isWatched(way), shutdown);
        return { stores: opened.stores, steps: redis.steps(opened) };
      },
    }),
  ),
);
