import { mkdir, mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findRedisBinary } from "./redis-binary.ts";
import { type LocalServer, type LocalServerOptions, startServer } from "./local-server.ts";

export interface RedisOptions extends LocalServerOptions {
  /** Where a downloaded Redis is kept. */
  downloadFolder?: string;
  /** Is told a line when something takes longer than a moment. */
  say?: (line: string) => void;
}

/**
 * Starts a Redis (or Valkey) of our own on 127.0.0.1. Durable: every write is in its append-only file within a second.
 * Not durable: memory only; it comes back empty.
 * @throws {RedisNotFound} when there is none and none can be downloaded; {ServerNotStarted} with the end of its log.
 */
export async function startRedis(options: RedisOptions = {}): Promise<LocalServer> {
  const program = await findRedisBinary(options.downloadFolder, options.say);
  const folder = await folderOf(options.folder);
  const throwawayFolder = options.folder === undefined ? folder : undefined;
  const remove = async () => {
    if (throwawayFolder !== undefined) await rm(throwawayFolder, { recursive: true, force: true });
  };
  try {
    const { child, port } = await startServer(
      {
        name: "Redis",
        ...program,
        args: (chosen) => redisArgs(folder, chosen, options.durable ?? false),
        readyLine: "Ready to accept connections",
        folder,
        pidFile: pidFileOf(folder),
        workFolder: folder,
        throwawayFolder,
      },
      options.port,
    );
    const stop = async () => {
      await child.stop();
      await remove();
    };
    const url = `redis://127.0.0.1:${port}`;
    return { url, port, pid: child.pid, folder, exited: child.exited, kill: child.kill, stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function folderOf(folder: string | undefined): Promise<string> {
  if (folder === undefined) return realpath(await mkdtemp(join(tmpdir(), "serpmill-redis-")));
  await mkdir(folder, { recursive: true, mode: 0o700 });
  return realpath(folder);
}

function redisArgs(folder: string, port: number, durable: boolean): string[] {
  const args = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder, "--pidfile", pidFileOf(folder)];
  // Never evict: a hold or a job that vanishes under memory pressure would be money that vanishes.
  args.push("--maxmemory-policy", "noeviction", "--save", "");
  return durable ? [...args, "--appendonly", "yes", "--appendfsync", "everysec"] : [...args, "--appendonly", "no"];
}

const pidFileOf = (folder: string) => join(folder, "redis.pid");
