import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { migrate } from "../../../shared/database/migrate.ts";
import { startPostgres } from "../../../shared/local/postgres.ts";
import { startRedis } from "../../../shared/local/redis.ts";
import type { LocalServer } from "../../../shared/local/local-server.ts";

const diskMib = 700;
const mib = 1_048_576;

/** A Postgres and a Redis of one's own that survive being killed, on a disk of their own that can be filled. */
export class Servers {
  postgres: LocalServer;
  redis: LocalServer;
  readonly folder: string;
  /** Whether the folder is a file system of its own; else it cannot be filled. */
  readonly hasDisk: boolean;
  #restarts: Promise<void> = Promise.resolve();

  private constructor(parts: { postgres: LocalServer; redis: LocalServer; folder: string; hasDisk: boolean }) {
    this.postgres = parts.postgres;
    this.redis = parts.redis;
    this.folder = parts.folder;
    this.hasDisk = parts.hasDisk;
  }

  static async open(): Promise<Servers> {
    const folder = mkdtempSync(join(tmpdir(), "serpmill-faults-"));
    const hasDisk = mount(folder);
    const postgres = await startPostgres({ folder: join(folder, "postgres") });
    const redis = await startRedis({ folder: join(folder, "redis"), durable: true });
    const servers = new Servers({ postgres, redis, folder, hasDisk });
    await migrate(postgres.url);
    await servers.#prepareRedis();
    return servers;
  }

  /** Starts Postgres again where this one was that was killed, unless somebody has. */
  restartPostgres(killed: LocalServer): Promise<void> {
    return this.#inTurn(async () => {
      await killed.exited;
      if (this.postgres === killed) this.postgres = await startPostgres({ folder: killed.folder, port: killed.port });
    });
  }

  /** Signals Postgres with all its processes, where the system tells which these are. */
  signalPostgres(signal: NodeJS.Signals): void {
    const { pid } = this.postgres;
    const told = `/proc/${pid}/task/${pid}/children`;
    const children = existsSync(told) ? readFileSync(told, "utf8").split(" ").filter(Boolean).map(Number) : [];
    for (const one of [pid, ...children]) {
      try {
        process.kill(one, signal);
      } catch {
        // Ended in the meantime.
      }
    }
  }

  /** Starts Postgres again if it gave up by itself. */
  async ensurePostgres(): Promise<void> {
    if (await hasEnded(this.postgres)) await this.restartPostgres(this.postgres);
  }

  async ensureRedis(): Promise<void> {
    if (await hasEnded(this.redis)) await this.restartRedis(() => undefined);
  }

  /** Kills Redis and starts it again, after what is done to its append-only file meanwhile. */
  restartRedis(meanwhile: (appendOnlyFolder: string) => void): Promise<void> {
    return this.#inTurn(async () => {
      this.redis.kill("SIGKILL");
      await this.redis.exited;
      const { folder, port } = this.redis;
      meanwhile(join(folder, "appendonlydir"));
      this.redis = await startRedis({ folder, port, durable: true });
      await this.#prepareRedis();
    });
  }

  /** Keeps the append-only file as it is now. @returns what puts it back. */
  rememberRedis(): (appendOnlyFolder: string) => void {
    const copy = mkdtempSync(join(tmpdir(), "serpmill-older-"));
    cpSync(join(this.redis.folder, "appendonlydir"), copy, { recursive: true });
    return (appendOnlyFolder) => {
      rmSync(appendOnlyFolder, { recursive: true });
      cpSync(copy, appendOnlyFolder, { recursive: true });
      rmSync(copy, { recursive: true });
    };
  }

  /** Runs a command on Redis on a connection of its own, as an administrator would. */
  async onRedis(...command: [string, ...string[]]): Promise<unknown> {
    const redis = new Redis(this.redis.url, {
      retryStrategy: () => null,
      lazyConnect: true,
      enableReadyCheck: false, // It asks for INFO, which a busy Redis refuses.
    });
    redis.on("error", () => undefined); // The command fails with it.
    try {
      await redis.connect();
      return await redis.call(...command);
    } finally {
      redis.disconnect();
    }
  }

  fillDisk(): void {
    const freeBytes = Number(execFileSync("stat", ["--file-system", "--format=%a", this.folder])) * 4_096;
    try {
      execFileSync("fallocate", ["--length", String(Math.max(freeBytes - 4_096, 4_096)), this.#ballast], {
        stdio: "ignore",
      });
    } catch {
      writeFileSync(this.#ballast, Buffer.alloc(mib)); // Somebody else was filling it at this moment.
    }
  }

  freeDisk(): void {
    rmSync(this.#ballast, { force: true });
  }

  get #ballast(): string {
    return join(this.folder, "ballast");
  }

  async close(): Promise<void> {
    await this.redis.stop();
    await this.postgres.stop();
    this.abandon();
  }

  /** Leaves no trace on this machine; the servers have guards of their own, which stop them when we are gone. */
  abandon(): void {
    if (this.hasDisk) execFileSync("umount", ["--lazy", this.folder]);
    // Postgres' data may lie elsewhere, where its user can enter.
    for (const folder of [this.postgres.folder, this.folder]) rmSync(folder, { recursive: true, force: true });
  }

  // Two faults may restart the same server.
  #inTurn(restart: () => Promise<void>): Promise<void> {
    const done = this.#restarts.then(restart);
    this.#restarts = done.catch(() => undefined);
    return done;
  }

  // A script without end is to be noticed soon.
  async #prepareRedis(): Promise<void> {
    await this.onRedis("config", "set", "busy-reply-threshold", "300");
  }
}

const hasEnded = (server: LocalServer) => Promise.race([server.exited.then(() => true), sleep(0, false)]);

// Only root may mount, and not in every container.
function mount(folder: string): boolean {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${diskMib}m,mode=755`, "tmpfs", folder], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

/** Cuts off the end of the append-only file, as a power cut does. */
export function cutAppendOnlyFile(appendOnlyFolder: string, bytes: number): void {
  for (const file of globSync(join(appendOnlyFolder, "*.incr.aof"))) {
    truncateSync(file, Math.max(0, statSync(file).size - bytes));
  }
}

/** Takes the append-only file away altogether. */
export function removeAppendOnlyFile(appendOnlyFolder: string): void {
  if (existsSync(appendOnlyFolder)) rmSync(appendOnlyFolder, { recursive: true });
}
