import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { RunningProcess } from "../../harness/processes/process.ts";

const pollMs = 50;
const kib = 1_024;
const mib = 1_048_576;

/** What a process has in memory now, in bytes. */
export function residentBytes({ child: { pid } }: RunningProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * kib;
}

/** What Redis uses for its data now, in bytes. */
export async function redisBytes(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1] ?? 0);
}

/** Follows what a process has in memory, until stopped. */
export class MemoryWatch {
  readonly beforeBytes: number;
  #mostBytes: number;
  readonly #polling: NodeJS.Timeout;

  constructor(process: RunningProcess) {
    this.beforeBytes = residentBytes(process);
    this.#mostBytes = this.beforeBytes;
    this.#polling = setInterval(() => {
      if (!process.hasEnded) this.#mostBytes = Math.max(this.#mostBytes, residentBytes(process));
    }, pollMs);
  }

  get mostBytes(): number {
    return this.#mostBytes;
  }

  stop(): this {
    clearInterval(this.#polling);
    return this;
  }

  get grownBytes(): number {
    return this.#mostBytes - this.beforeBytes;
  }

  /** As in `120 → 184 MB`. */
  toString(): string {
    return `${inMb(this.beforeBytes)} → ${inMb(this.#mostBytes)} MB`;
  }
}

export const inMb = (bytes: number): string => (bytes / mib).toFixed(0);
