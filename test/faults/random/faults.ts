import { setTimeout as sleep } from "node:timers/promises";
import { replyInboxKey } from "../../../shared/queue/replies.ts";
import { publishIdentityChange, setSuspended } from "../../../shared/organizations/organizations.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { providerFailures } from "./provider.ts";
import { cutAppendOnlyFile, removeAppendOnlyFile } from "./servers.ts";
import type { ClusterProcess } from "./cluster-process.ts";
import {
  clockJumps,
  cut,
  cutAround,
  type Degree,
  frozen,
  held,
  hostReplaced,
  killed,
  replaced,
  silent,
  slow,
  unreachable,
} from "./process-faults.ts";
import type { Cluster } from "./cluster.ts";

/** Starts a fault. @returns a function that ends it. */
type Fault = (cluster: Cluster, degree: Degree) => Promise<() => Promise<void> | void> | (() => Promise<void> | void);

type Kind = "apis" | "workers";
const on = (kind: Kind, fault: (process: ClusterProcess, degree: Degree) => () => Promise<void> | void): Fault => {
  return (cluster, degree) => fault(cluster[kind][degree.process], degree);
};

const inRedis =
  (command: [string, ...string[]], end: [string, ...string[]]): Fault =>
  async ({ servers }) => {
    await servers.onRedis(...command);
    return () => servers.onRedis(...end).then(() => undefined);
  };

const nothing = () => undefined;

/** Redis is killed, and restarted after a change to its append-only file. */
const redisDown =
  (meanwhile: (degree: Degree) => (appendOnlyFolder: string) => void): Fault =>
  ({ servers }, degree) => {
    servers.redis.kill("SIGKILL");
    return () => servers.restartRedis(meanwhile(degree));
  };

/** The prepared statements that settle searches. */
const settlements = ["decide_searches", "charge_alone"];

/** Every fault, by name. */
export const faults = {
  "API killed": on("apis", killed),
  "API frozen": on("apis", unreachable(frozen)),
  "API replaced": on("apis", replaced),
  "clock jumps in an API": on("apis", clockJumps),
  "worker killed": on("workers", killed),
  "worker frozen": on("workers", frozen),
  "worker replaced": on("workers", replaced),
  "clock jumps in a worker": on("workers", clockJumps),

  "Postgres cut off from an API": on("apis", cut("postgres")),
  "Postgres silent for an API": on("apis", silent("postgres")),
  "Postgres' replies held from an API": on("apis", held("replies", "postgres")),
  "settling of unknown outcome in an API": on("apis", cutAround("postgres", ...settlements)),
  "confirmation of unknown outcome in an API": on("apis", cutAround("postgres", "confirm_delivered")),
  "Postgres cut off from a worker": on("workers", cut("postgres")),
  "Postgres silent for a worker": on("workers", silent("postgres")),
  "Postgres' replies held from a worker": on("workers", held("replies", "postgres")),
  "Postgres slow for a worker": on("workers", slow("postgres")),
  "settling of unknown outcome in a worker": on("workers", cutAround("postgres", ...settlements)),

  "Redis cut off from an API": on("apis", cut("redis")),
  "Redis silent for an API": on("apis", silent("redis")),
  "Redis' replies held from an API": on("apis", held("replies", "redis")),
  "Redis' host replaced for an API": on("apis", hostReplaced("redis")),
  "Redis' host replaced for a worker": on("workers", hostReplaced("redis")),
  "Postgres' host replaced for an API": on("apis", hostReplaced("postgres")),
  "Postgres' host replaced for a worker": on("workers", hostReplaced("postgres")),
  "Redis slow for an API": on("apis", slow("redis")),
  "admission of unknown outcome": on("apis", cutAround("redis", ":window")),
  "enqueueing of unknown outcome": on("apis", cutAround("redis", "enqueuedAtMs")),
  "Redis cut off from a worker": on("workers", cut("redis")),
  "Redis silent for a worker": on("workers", silent("redis")),
  "an API's requests to Redis held": on("apis", held("requests", "redis")),
  "a worker's requests to Redis held": on("workers", held("requests", "redis")),
  "an API's requests to Postgres held": on("apis", held("requests", "postgres")),
  "a worker's requests to Postgres held": on("workers", held("requests", "postgres")),
  "Redis' replies held from a worker": on("workers", held("replies", "redis")),
  "Redis slow for a worker": on("workers", slow("redis")),
  "answering of unknown outcome": on("workers", cutAround("redis", replyInboxKey(""))),
  "hold's end of unknown outcome": on("workers", cutAround("redis", ":holds")),

  "callers cut off from an API": on("apis", unreachable(cut("outside"))),
  "callers slow for an API": on("apis", unreachable(slow("outside"))),
  "provider cut off from a worker": on("workers", cut("outside")),
  "provider slow for a worker": on("workers", slow("outside")),
  "provider silent for a worker": on("workers", silent("outside")),
  "provider fails": ({ provider }, { strength }) => {
    const names = Object.keys(providerFailures);
    provider.fail(names[Math.floor(strength * (names.length - 1))]);
    return () => provider.fail(undefined);
  },

  "Redis flushed": inRedis(["flushall"], ["ping"]),
  "Redis' scripts forgotten": inRedis(["script", "flush"], ["ping"]),
  "Redis read-only": inRedis(["replicaof", "127.0.0.1", "1"], ["replicaof", "no", "one"]),
  "Redis out of memory": inRedis(["config", "set", "maxmemory", "100kb"], ["config", "set", "maxmemory", "0"]),
  "Redis paused": inRedis(["client", "pause", "3000", "all"], ["ping"]),
  "Redis busy with an endless script": ({ servers }) => {
    const endless = servers.onRedis("eval", "while true do end", "0").catch(nothing);
    return async () => {
      await servers.onRedis("script", "kill").catch(nothing);
      await endless;
    };
  },
  "Redis frozen": ({ servers }) => {
    servers.redis.kill("SIGSTOP");
    return () => servers.redis.kill("SIGCONT");
  },
  "Redis killed": redisDown(() => nothing),
  "Redis back without its data": redisDown(() => removeAppendOnlyFile),
  "Redis' last writes lost": redisDown(
    ({ strength }) =>
      (folder) =>
        cutAppendOnlyFile(folder, 1 + 200_000 * strength),
  ),
  "Redis back from the past": ({ servers }) => {
    const putBack = servers.rememberRedis();
    return () => servers.restartRedis(putBack);
  },

  "Postgres killed": ({ servers }, { landed }) => {
    const { postgres } = servers;
    // Either all processes at once, after which it recovers from its log, or the parent alone, which its children notice.
    postgres.kill(landed ? "SIGQUIT" : "SIGKILL");
    return () => servers.restartPostgres(postgres);
  },
  "Postgres frozen": ({ servers }) => {
    servers.signalPostgres("SIGSTOP");
    return () => servers.signalPostgres("SIGCONT");
  },
  "a Postgres backend killed": async ({ servers }) => {
    await asOwner(servers.postgres.url, async (client) => {
      const ours =
        "select pid from pg_stat_activity where application_name like 'serpmill-%' order by random() limit 1";
      const { rows } = await client.query(ours);
      if (rows[0]) process.kill(rows[0].pid, "SIGKILL");
    }).catch(nothing); // Postgres then ends every connection, including this one.
    return nothing;
  },
  "Postgres' connections ended": async ({ servers }) => {
    const all = "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'serpmill-%'";
    await asOwner(servers.postgres.url, all);
    return nothing;
  },
  "Postgres read-only": async ({ servers }) => {
    const set = (to: "on" | "off") =>
      asOwner(servers.postgres.url, async (client) => {
        await client.query("set default_transaction_read_only = off");
        await client.query(`alter system set default_transaction_read_only = ${to}`);
        await client.query("select pg_reload_conf()");
      });
    await set("on");
    return () => set("off");
  },
  "ledger locked": ({ servers }, { strength }) => {
    const locked = asOwner(servers.postgres.url, async (client) => {
      await client.query("begin");
      await client.query("lock table ledger_entries in access exclusive mode");
      await sleep(6_000 * strength);
      await client.query("rollback");
    }).catch(nothing); // Postgres may be killed during the wait.
    return () => locked.then(nothing);
  },
  "disk full": ({ servers }) => {
    if (!servers.hasDisk) return nothing;
    servers.fillDisk();
    return async () => {
      servers.freeDisk();
      await sleep(500);
      // Postgres stops if it cannot write its log.
      await servers.ensurePostgres();
    };
  },

  "jobs doubled": async ({ queue }) => {
    const jobs = await queue.getJobs(["active", "wait"]);
    const twins = jobs
      .filter(Boolean)
      .map((job) => ({ name: job.name, data: job.data, opts: { jobId: `${job.id}_again` } }));
    if (twins.length > 0) await queue.addBulk(twins);
    return nothing;
  },
  "organization suspended": async ({ service, customers }, { strength }) => {
    const { organizationId } = customers[Math.floor(strength * (customers.length - 1))] ?? { organizationId: "" };
    const set = async (suspended: boolean) => {
      await setSuspended(service.database, organizationId, suspended);
      await publishIdentityChange(service.redis);
    };
    await set(true);
    return () => set(false);
  },
} satisfies Record<string, Fault>;

export type FaultName = keyof typeof faults;
// Object.keys returns strings, whatever the keys of a constant are.
export const faultNames = Object.keys(faults) as FaultName[];
