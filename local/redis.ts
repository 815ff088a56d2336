import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findRedisBinary } from "./redis-binary.ts";
import { type LocalServer, type LocalServerOptions, startServer } from "./local-server.ts";

const passwordBytes = 18;

export interface RedisOptions extends LocalServerOptions {
  downloadFolder?: string;
  /** Whether it has the users of deploy/redis, with new passwords. Otherwise every connection may do everything. */
  withUsers?: boolean;
  /** More arguments of the server. */
  extraArgs?: readonly string[];
  /** Called with a line before a slow step. */
  say?: (line: string) => void;
}

export interface LocalRedis extends LocalServer {
  /** The addresses for the API and the worker. */
  readonly urls: { api: string; worker: string };
}

/**
 * Starts a private Redis (or Valkey) on 127.0.0.1. If durable, it writes its append-only file every second; otherwise it
 * keeps everything in memory and restarts empty.
 * @throws {RedisBinaryNotFound} if there is none and none can be downloaded.
 * @throws {ServerNotStarted} with the last lines of its log.
 */
export async function startRedis(options: RedisOptions = {}): Promise<LocalRedis> {
  const binary = await findRedisBinary(options.downloadFolder, options.say);
  const folder = await folderOf(options.folder);
  const users = options.withUsers ? newUsers(folder) : undefined;
  const server = await startServer(
    {
      name: "Redis",
      command: users ? "/bin/sh" : binary.command,
      env: users ? { ...process.env, ...binary.env, ...users } : binary.env,
      args: (chosen) => [
        ...(users ? [startScript, binary.command] : []),
        ...redisArgs(folder, chosen, options.durable ?? false),
        ...(options.extraArgs ?? []),
      ],
      readyLine: "Ready to accept connections",
      folder,
      pidFile: pidFileOf(folder),
      workFolder: folder,
      throwawayFolder: options.folder === undefined ? folder : undefined,
    },
    options.port,
  );
  const url = `redis://127.0.0.1:${server.port}`;
  const urls = {
    api: users ? urlOf(url, "api", users.REDIS_API_PASSWORD) : url,
    worker: users ? urlOf(url, "worker", users.REDIS_WORKER_PASSWORD) : url,
  };
  return { ...server, url, urls };
}

const startScript = join(import.meta.dirname, "..", "deploy", "redis", "start.sh");

/** What start.sh, the same script as in docker compose, reads from its environment to write the server's users. */
function newUsers(folder: string) {
  const newPassword = () => randomBytes(passwordBytes).toString("base64url");
  return {
    USERS_FILE: join(folder, "users.acl"),
    REDIS_API_PASSWORD: newPassword(),
    REDIS_WORKER_PASSWORD: newPassword(),
  };
}

const urlOf = (serverUrl: string, username: string, password: string) =>
  Object.assign(new URL(serverUrl), { username, password }).href;

async function folderOf(folder: string | undefined): Promise<string> {
  if (folder === undefined) return realpath(await mkdtemp(join(tmpdir(), "serpmill-redis-")));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

function redisArgs(folder: string, port: number, durable: boolean): string[] {
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--pidfile", pidFileOf(folder)];
  // Never evict: a hold or a job that is evicted under memory pressure is money lost.
  args.push("--maxmemory-policy", "noeviction", "--save", "");
  return durable ? [...args, "--appendonly", "yes", "--appendfsync", "everysec"] : [...args, "--appendonly", "no"];
}

const pidFileOf = (folder: string) => join(folder, "redis.pid");
