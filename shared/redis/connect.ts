import { Redis } from "ioredis";
import type { Shutdown } from "../process/shutdown.ts";
import { type Log, throttledWarning } from "../log.ts";

const connectTimeoutMs = 5_000;
const commandTimeoutMs = 2_000;

interface Opening {
  url: string;
  name: string;
  log: Log;
  shutdown: Shutdown;
}

/**
 * A connection for commands that must fail and not wait: no command is queued while Redis is unreachable, and none is
 * resent after a connection broke, because the first copy may have run.
 */
export function openCommands(opening: Opening): Redis {
  return open(opening, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    enableAutoPipelining: true,
  });
}

/** A connection that waits for Redis: for blocking reads, and for BullMQ's Worker, which requires endless retries. */
export function openBlocking(opening: Opening): Redis {
  return open(opening, { maxRetriesPerRequest: null, enableOfflineQueue: true });
}

function open({ url, name, log, shutdown }: Opening, options: object): Redis {
  const redis = new Redis(url, {
    ...options,
    connectionName: `serpmill-${name}`,
    disableClientInfo: true, // A command that the users of deploy/redis may not run.
    connectTimeout: connectTimeoutMs,
    keepAlive: 30_000,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000),
    // After a failover the old primary refuses writes. Reconnect, and resend the refused command, which has not run.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
  });
  // For each refused command of a pipeline ioredis adds a listener to the old stream, which would log a warning.
  redis.on("connect", () => redis.stream.setMaxListeners(0));
  redis.on("error", throttledWarning(log, `error on the Redis connection ${name}`));
  shutdown.register(`redis ${name}`, () => redis.disconnect());
  return redis;
}

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
    const timer = setTimeout(resolve, timeoutMs, false);
    redis.once("ready", () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
