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
 * A connection for commands that must fail rather than wait: nothing is queued while Redis is away, and nothing is sent
 * again after a connection broke, because the first copy may have run.
 */
export function openCommands(opening: Opening): Redis {
  return open(opening, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: commandTimeoutMs,
    enableAutoPipelining: true,
  });
}

/** A connection that waits: for blocking reads, and for BullMQ's worker, which insists on endless retries. */
export function openBlocking(opening: Opening): Redis {
  return open(opening, { maxRetriesPerRequest: null, enableOfflineQueue: true });
}

function open({ url, name, log, shutdown }: Opening, options: object): Redis {
  const redis = new Redis(url, {
    ...options,
    connectionName: `serpmill-${name}`,
    connectTimeout: connectTimeoutMs,
    keepAlive: 30_000,
    retryStrategy: (attempt) => Math.min(50 * 2 ** Math.min(attempt, 5), 1_000),
    // After a failover the old primary refuses writes; the refused command is safe to send again.
    reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
  });
  // Each refused command of a pipeline asks for the new connection anew, and ioredis hangs a listener on the old one for each.
  redis.on("connect", () => redis.stream.setMaxListeners(0));
  redis.on("error", throttledWarning(log, `the Redis connection ${name} has a problem`));
  shutdown.register(`redis ${name}`, () => redis.disconnect());
  return redis;
}

/**
 * Whether a failed command may have run all the same: true for time-outs and broken connections, false where Redis itself
 * refused it before it began (out of memory, read-only, still loading) or it was never sent.
 */
export function mayHaveRun(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if (/^(OOM|READONLY|LOADING|MISCONF|NOREPLICAS|NOAUTH|NOPERM|CLUSTERDOWN|MASTERDOWN|BUSY) /.test(error.message))
    return false;
  return !error.message.startsWith("Stream isn't writeable");
}

const readyWarningIntervalMs = 5_000;

/** Waits until a connection takes commands, however long that is, and logs a warning every five seconds. */
export async function awaitReady(redis: Redis, name: string, log: Log): Promise<void> {
  while (!(await whenReady(redis, readyWarningIntervalMs))) log.warn({ connection: name }, "still waiting for Redis");
}

/** Waits until a connection takes commands. @returns false where it does not within the bound. */
export async function whenReady(redis: Redis, boundMs: number): Promise<boolean> {
  if (redis.status === "ready") return true;
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, boundMs, false);
    redis.once("ready", () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
