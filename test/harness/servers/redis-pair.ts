import { Redis } from "ioredis";
import type { LocalServer } from "../../../local/local-server.ts";
import { startRedis } from "../../../local/redis.ts";
import { eventually } from "../assertions/eventually.ts";
import { addRedisUsers, usualPasswords } from "./redis-users.ts";

/** A Redis of a pair, and the connection of its operator, who may do everything. */
export interface PairedRedis extends LocalServer {
  operator: Redis;
}

/** A primary and its replica, with the users of deploy/redis. The places of the two may change. */
export interface RedisPair {
  servers: readonly [PairedRedis, PairedRedis];
  /** The names of the processes' connections at a server. */
  connectionsAt: (server: PairedRedis) => Promise<string[]>;
  /** What the servers refused to their users. */
  refusals: () => Promise<unknown[]>;
  close: () => Promise<void>;
}

/** Starts both, and resolves when the replica has what the primary has. */
export async function startRedisPair(options: { extraArgs?: readonly string[] } = {}): Promise<RedisPair> {
  const [primary, replica] = await Promise.all([startOne(options), startOne(options)]);
  const servers = [primary, replica] as const;
  await replica.operator.replicaof("127.0.0.1", primary.port);
  await eventually(async () => /master_link_status:up/.test(await replica.operator.info("replication")));
  return {
    servers,
    connectionsAt: async ({ operator }) => {
      const list = String(await operator.call("CLIENT", "LIST"));
      return [...list.matchAll(/ name=(serpmill-\S+)/g)].map(([, name = ""]) => name);
    },
    refusals: async () => (await Promise.all(servers.map(({ operator }) => operator.call("ACL", "LOG")))).flat(),
    close: async () => {
      for (const { operator, stop } of servers) {
        operator.disconnect();
        await stop();
      }
    },
  };
}

async function startOne({ extraArgs = [] }: { extraArgs?: readonly string[] }): Promise<PairedRedis> {
  // A replica is sent the data at once, and not after five seconds.
  const server = await startRedis({ extraArgs: ["--repl-diskless-sync-delay", "0", ...extraArgs] });
  const operator = new Redis(server.url);
  operator.on("error", () => undefined); // Tests kill and freeze servers.
  await addRedisUsers(server);
  await operator.config("SET", "masteruser", "replica");
  await operator.config("SET", "masterauth", usualPasswords.REDIS_REPLICA_PASSWORD);
  return { ...server, operator };
}
