import { readFileSync } from "node:fs";
import type { Redis } from "ioredis";
import type { RunningProcess } from "../../harness/processes/process.ts";
import type { Finding } from "../attack.ts";

const pollMs = 50;
const kib = 1_024;
const mib = 1_048_576;

/** The resident memory of a process. */
export function residentBytes({ child: { pid } }: RunningProcess): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * kib;
}

/** The memory that Redis uses for its data. */
export async function redisBytes(redis: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1] ?? 0);
}

/** Records the peak memory of a process until it is stopped. */
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

/** Whether the API's memory grew by at most this much. */
export const judgeGrowth = (watch: MemoryWatch, bytesMax: number): Finding => ({
  promised: `the API's memory grows by at most ${inMb(bytesMax)} MB`,
  seen: watch.toString(),
  held: watch.grownBytes <= bytesMax,
});

export const inMb = (bytes: number): string => (bytes / mib).toFixed(0);
