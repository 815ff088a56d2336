import type { Redis } from "ioredis";
import type { Log } from "../log.ts";

/**
 * Whether a failed command may have run all the same: true for timeouts and broken connections, false if Redis refused it
 * (out of memory, read-only, still loading) or it was never sent.
 */
export function mayHaveRun(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if (/^(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|NOAUTH|NOPERM|CLUSTERDOWN|MASTERDOWN|BUSY) /.test(error.message))
    return false;
  return !error.message.startsWith("Stream isn't writeable");
}

const readyWarningIntervalMs = 2_000;

/** Waits until a connection takes commands, however long that is, and logs a warning every two seconds. */
export async function awaitReady(redis: Redis, name: string, log: Log): Promise<void> {
  while (!(await whenReady(redis, readyWarningIntervalMs))) log.warn({ connection: name }, "still waiting for Redis");
}

/** Waits until a connection takes commands. @returns false at the timeout. */
export async function whenReady(redis: Redis, timeoutMs: number): Promise<boolean> {
  if (redis.status === "ready") return true;
  return new Promise((resolve) => {
    const ready = () => {
      clearTimeout(timer);
      resolve(true);
    };
    const timer = setTimeout(() => {
      redis.off("ready", ready);
      resolve(false);
    }, timeoutMs);
    redis.once("ready", ready);
  });
}
