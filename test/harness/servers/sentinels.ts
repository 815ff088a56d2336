import { writeFileSync } from "node:fs";
import { mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type LocalServer, startServer } from "../../../local/local-server.ts";
import { findRedisBinary } from "../../../local/redis-binary.ts";
import { eventually } from "../assertions/eventually.ts";
import { startScript, usualPasswords } from "./redis-users.ts";

const count = 3;
const quorum = 2;
/** The name of the primary. */
const name = "main";

const passwords = {
  SENTINEL_PASSWORD: "of-serpmill",
  SENTINEL_PEER_PASSWORD: "of-the-peers",
  SENTINEL_OPERATOR_PASSWORD: "of-the-operator",
};

/** Three Sentinels with the users of deploy/redis, which agree about a primary with one replica. */
export interface Sentinels {
  servers: readonly LocalServer[];
  /** The settings of a process: REDIS_URL for this user, and the login at the Sentinels. */
  settings: (user: "api" | "worker") => Record<string, string>;
  /** Makes the last Sentinel switch over to the replica. */
  switchOver: () => Promise<unknown>;
  /** What the Sentinels refused to their users. */
  refusals: () => Promise<unknown[]>;
  close: () => Promise<void>;
}

/** Starts them, and resolves when each knows the two others and the replica. */
export async function startSentinels(primary: LocalServer, { downAfterMs = 3_000 } = {}): Promise<Sentinels> {
  const servers = await Promise.all(Array.from({ length: count }, () => startSentinel(primary, downAfterMs)));
  const operators = servers.map(({ port }) => {
    const login = { username: "operator", password: passwords.SENTINEL_OPERATOR_PASSWORD };
    const operator = new Redis({ port, ...login, disableClientInfo: true, enableReadyCheck: false });
    operator.on("error", () => undefined); // Tests kill and freeze Sentinels.
    return operator;
  });
  const agrees = async (operator: Redis) => {
    const state = String(await operator.call("SENTINEL", "MASTER", name));
    return state.includes(`num-slaves,1`) && state.includes(`num-other-sentinels,${count - 1}`);
  };
  await eventually(async () => (await Promise.all(operators.map(agrees))).every(Boolean));
  const hosts = servers.map(({ port }) => `127.0.0.1:${port}`).join(",");
  return {
    servers,
    settings: (user) => ({
      REDIS_URL: `redis+sentinel://${user}:${usualPasswords[user === "api" ? "REDIS_API_PASSWORD" : "REDIS_WORKER_PASSWORD"]}@${hosts}/${name}`,
      SENTINEL_USERNAME: "serpmill",
      SENTINEL_PASSWORD: passwords.SENTINEL_PASSWORD,
    }),
    switchOver: async () => operators.at(-1)?.call("SENTINEL", "FAILOVER", name),
    refusals: async () => (await Promise.all(operators.map((operator) => operator.call("ACL", "LOG")))).flat(),
    close: async () => {
      for (const operator of operators) operator.disconnect();
      await Promise.all(servers.map(({ stop }) => stop()));
    },
  };
}

async function startSentinel(primary: LocalServer, downAfterMs: number): Promise<LocalServer> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "serpmill-sentinel-")));
  const binary = await findRedisBinary();
  const configFile = join(folder, "sentinel.conf");
  const pidFile = join(folder, "sentinel.pid");
  const users = { USERS: "sentinel-users.acl", USERS_FILE: join(folder, "users.acl"), ...passwords };
  const server = await startServer({
    name: "Sentinel",
    command: "/bin/sh",
    env: { ...process.env, ...binary.env, ...users },
    args: (port) => {
      writeFileSync(configFile, configOf({ port, folder, pidFile, primary, downAfterMs }));
      return [startScript, binary.command, configFile, "--sentinel"];
    },
    readyLine: "Sentinel ID is",
    folder,
    pidFile,
    workFolder: folder,
    throwawayFolder: folder,
  });
  return { ...server, url: `redis://127.0.0.1:${server.port}` };
}

const configOf = (parts: {
  port: number;
  folder: string;
  pidFile: string;
  primary: LocalServer;
  downAfterMs: number;
}) =>
  [
    "bind 127.0.0.1",
    `port ${parts.port}`,
    `dir ${parts.folder}`,
    `pidfile ${parts.pidFile}`,
    "sentinel sentinel-user peer",
    `sentinel sentinel-pass ${passwords.SENTINEL_PEER_PASSWORD}`,
    `sentinel monitor ${name} 127.0.0.1 ${parts.primary.port} ${quorum}`,
    `sentinel auth-user ${name} sentinel`,
    `sentinel auth-pass ${name} ${usualPasswords.REDIS_SENTINEL_PASSWORD}`,
    `sentinel down-after-milliseconds ${name} ${parts.downAfterMs}`,
    `sentinel failover-timeout ${name} 10000`,
    "",
  ].join("\n");
