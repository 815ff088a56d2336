import type { Socket } from "node:net";
import { Redis } from "ioredis";
import { type Log, throttledWarning } from "../log.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";
import { protocolTimes } from "../protocol-times.ts";

const connectTimeoutMs = 2_000;
const reconnectAfterMinMs = 50;
const reconnectAfterMaxMs = 1_000;

/** Options of a connection that fails and does not wait. */
const failing = {
  maxRetriesPerRequest: 0,
  enableOfflineQueue: false,
  commandTimeout: protocolTimes.redisCommandMs,
};
/** Options of a connection that waits. */
const waiting = { maxRetriesPerRequest: null, enableOfflineQueue: true };

/**
 * The connections of one process to Redis. Each of them notices a Redis that vanished without closing it, as a host does
 * that lost its power or its network: a connection on which Redis leaves a command unanswered for `redisSilenceMs` is
 * closed and opened anew, which also looks up the host's address anew. A ping on each connection once a second sees to it
 * that there is such a command.
 */
export class RedisConnections {
  readonly #url: string;
  readonly #log: Log;
  readonly #shutdown: Shutdown;
  readonly #open = new Set<{ name: string; redis: Redis }>();

  constructor(parts: { url: string; log: Log; shutdown: Shutdown }) {
    this.#url = parts.url;
    this.#log = parts.log;
    this.#shutdown = parts.shutdown;
    const pings = setInterval(() => this.#ping(), protocolTimes.redisPingMs);
    pings.unref();
    parts.shutdown.register("redis pings", () => clearInterval(pings));
  }

  /**
   * Opens a connection for commands that must fail and not wait: no command is queued while Redis is unreachable, and none
   * is resent after a connection broke, because the first copy may have run.
   */
  openCommands(name: string): Redis {
    return this.#connect(name, failing);
  }

  /** Opens one that waits for Redis: for blocking reads, subscribers, and BullMQ's Worker, which requires endless retries. */
  openBlocking(name: string): Redis {
    return this.#connect(name, waiting);
  }

  /** The names of the connections that take no commands now. */
  notReady(): string[] {
    const missing = [...this.#open].filter(({ redis }) => redis.status !== "ready").map(({ name }) => name);
    return [...new Set(missing)];
  }

  #connect(name: string, options: typeof failing | typeof waiting): Redis {
    const redis = new Redis(this.#url, {
      ...options,
      connectionName: `serpmill-${name}`,
      disableClientInfo: true, // A command that the users of deploy/redis may not run.
      connectTimeout: connectTimeoutMs,
      socketTimeout: protocolTimes.redisSilenceMs,
      keepAlive: 30_000,
      retryStrategy: (attempt) => reconnectAfterMs(attempt),
      // After a failover the old primary refuses writes. Reconnect, and resend the refused command, which has not run.
      reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
    });
    redis.on("connect", () => shareWrites(redis.stream));
    redis.on("error", throttledWarning(this.#log, `error on the Redis connection ${name}`));
    this.#shutdown.register(`redis ${name}`, () => redis.disconnect());
    this.#watch(name, redis);
    return redis;
  }

  #watch(name: string, redis: Redis): Redis {
    this.#open.add({ name, redis });
    closeOnce(redis);
    // BullMQ's Worker makes copies of the connection that it gets, and works with these.
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => this.#watch(name, duplicate(override));
    return redis;
  }

  #ping(): void {
    for (const { redis } of this.#open) {
      // If it fails, the connection is closed already or will be.
      if (redis.status === "ready") redis.ping().catch(() => undefined);
    }
  }
}

/**
 * A replica refuses each of many commands that are under way, and for each of them ioredis closes the connection to open it
 * anew, with one more listener on the stream. The first time is enough.
 */
function closeOnce(redis: Redis): void {
  const disconnect = redis.disconnect.bind(redis);
  redis.disconnect = (willReconnect = false) => {
    if (!willReconnect || !redis.stream?.writableEnded) disconnect(willReconnect);
  };
}

/** Sends commands that are written one right after the other with one system call. */
function shareWrites(stream: Socket): void {
  const write = stream.write.bind(stream);
  stream.write = (...args: unknown[]): boolean => {
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    return Reflect.apply(write, stream, args);
  };
}

/** A growing pause, with enough chance in it that processes which lost Redis together do not come back together. */
export function reconnectAfterMs(attempt: number, random = Math.random()): number {
  const longestMs = Math.min(reconnectAfterMinMs * 2 ** Math.min(attempt, 10), reconnectAfterMaxMs);
  return longestMs * (0.5 + random / 2);
}
