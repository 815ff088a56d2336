import { execFileSync } from "node:child_process";
import { cpSync, existsSync, globSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";
import { migrate } from "../../../shared/database/migrate.ts";
import { createProcessLogin } from "../../../shared/database/process-login.ts";
import { processUrlOf, startPostgres } from "../../../local/postgres.ts";
import { startRedis } from "../../../local/redis.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { signalPostgres } from "../../harness/servers/signal-postgres.ts";
import type { LocalServer } from "../../../local/local-server.ts";

const diskMib = 700;
const mib = 1_048_576;

/** A Postgres and a Redis that keep their data when they are killed, on their own disk, which can be filled. */
export class Servers {
  postgres: LocalServer;
  redis: LocalServer;
  /** Whether the folder is a separate file system. Otherwise it cannot be filled. */
  readonly hasDisk: boolean;
  readonly #folder: GuardedFolder;
  #copies = 0;
  #restarts: Promise<void> = Promise.resolve();

  private constructor(parts: { postgres: LocalServer; redis: LocalServer; folder: GuardedFolder; hasDisk: boolean }) {
    this.postgres = parts.postgres;
    this.redis = parts.redis;
    this.hasDisk = parts.hasDisk;
    this.#folder = parts.folder;
  }

  static async open(): Promise<Servers> {
    const folder = await GuardedFolder.create("serpmill-faults-");
    const hasDisk = folder.mount(diskMib);
    const postgres = await startPostgres({ folder: join(folder.path, "postgres") });
    const redis = await startRedis({ folder: join(folder.path, "redis"), durable: true });
    const servers = new Servers({ postgres, redis, folder, hasDisk });
    await migrate(postgres.url);
    await createProcessLogin(postgres.url, processUrlOf(postgres.url));
    await servers.#prepareRedis();
    return servers;
  }

  /** Restarts the Postgres that was killed, unless that has happened already. */
  restartPostgres(killed: LocalServer): Promise<void> {
    return this.#inTurn(async () => {
      await killed.exited;
      if (this.postgres === killed) this.postgres = await startPostgres({ folder: killed.folder, port: killed.port });
    });
  }

  /** Signals Postgres and its children, if the system lists them. */
  signalPostgres(signal: NodeJS.Signals): void {
    signalPostgres(this.postgres.pid, signal);
  }

  /** Restarts Postgres if it has stopped by itself. */
  async ensurePostgres(): Promise<void> {
    if (await hasEnded(this.postgres)) await this.restartPostgres(this.postgres);
  }

  async ensureRedis(): Promise<void> {
    if (await hasEnded(this.redis)) await this.restartRedis(() => undefined);
  }

  /** Kills Redis, lets `between` change its append-only file, and starts it again. */
  restartRedis(between: (appendOnlyFolder: string) => void): Promise<void> {
    return this.#inTurn(async () => {
      this.redis.kill("SIGKILL");
      await this.redis.exited;
      const { folder, port } = this.redis;
      between(join(folder, "appendonlydir"));
      this.redis = await startRedis({ folder, port, durable: true });
      await this.#prepareRedis();
    });
  }

  /** Copies the append-only file. @returns a function that restores the copy. */
  rememberRedis(): (appendOnlyFolder: string) => void {
    this.#copies += 1;
    const copy = join(this.#folder.path, `older-${this.#copies}`);
    cpSync(join(this.redis.folder, "appendonlydir"), copy, { recursive: true });
    return (appendOnlyFolder) => {
      rmSync(appendOnlyFolder, { recursive: true });
      cpSync(copy, appendOnlyFolder, { recursive: true });
      rmSync(copy, { recursive: true });
    };
  }

  /** Runs a Redis command on a new connection, as an operator would. */
  async onRedis(...command: [string, ...string[]]): Promise<unknown> {
    const redis = new Redis(this.redis.url, {
      retryStrategy: () => null,
      lazyConnect: true,
      enableReadyCheck: false, // It sends INFO, which a busy Redis refuses.
    });
    redis.on("error", () => undefined); // The command fails too.
    try {
      await redis.connect();
      return await redis.call(...command);
    } finally {
      redis.disconnect();
    }
  }

  fillDisk(): void {
    const freeBytes = Number(execFileSync("stat", ["--file-system", "--format=%a", this.#folder.path])) * 4_096;
    try {
      execFileSync("fallocate", ["--length", String(Math.max(freeBytes - 4_096, 4_096)), this.#ballast], {
        stdio: "ignore",
      });
    } catch {
      writeFileSync(this.#ballast, Buffer.alloc(mib)); // A server wrote meanwhile, so that less was free.
    }
  }

  freeDisk(): void {
    rmSync(this.#ballast, { force: true });
  }

  get #ballast(): string {
    return join(this.#folder.path, "ballast");
  }

  async close(): Promise<void> {
    await this.redis.stop();
    await this.postgres.stop();
    // Postgres' data may be in another folder, one that its user can access.
    rmSync(this.postgres.folder, { recursive: true, force: true });
    this.#folder.remove(this.hasDisk);
  }

  // Two faults may restart the same server.
  #inTurn(restart: () => Promise<void>): Promise<void> {
    const done = this.#restarts.then(restart);
    this.#restarts = done.catch(() => undefined);
    return done;
  }

  // Makes Redis report an endless script soon.
  async #prepareRedis(): Promise<void> {
    await this.onRedis("config", "set", "busy-reply-threshold", "300");
  }
}

const hasEnded = (server: LocalServer) => Promise.race([server.exited.then(() => true), sleep(0, false)]);

/** Cuts off the end of the append-only file, as a power cut does. */
export function cutAppendOnlyFile(appendOnlyFolder: string, bytes: number): void {
  for (const file of globSync(join(appendOnlyFolder, "*.incr.aof"))) {
    truncateSync(file, Math.max(0, statSync(file).size - bytes));
  }
}

/** Deletes the append-only file. */
export function removeAppendOnlyFile(appendOnlyFolder: string): void {
  if (existsSync(appendOnlyFolder)) rmSync(appendOnlyFolder, { recursive: true });
}
