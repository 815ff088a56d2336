import type { Socket } from "node:net";
import { Redis } from "ioredis";
import { readRedisAddress } from "../config/redis-address.ts";
import { actEvery } from "../concurrency/run-periodically.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";
import { protocolTimes } from "../protocol-times.ts";
import { type ConnectionOptions, type SentinelLogin, Sentinels } from "./sentinels.ts";

const connectTimeoutMs = 2_000;
const reconnectAfterMinMs = 50;
const reconnectAfterMaxMs = 1_000;
/** However often a connection finds a replica, it soon looks again for the primary: a proxy moves within a second. */
const replicasCountedMax = 2;
/** If the address leads to two servers in turn, a process does not move faster than this. */
const moveEveryMs = 5_000;

/** Options of every connection. */
const common = {
  disableClientInfo: true, // A command that the users of deploy/redis may not run.
  // Subscribers subscribe again themselves: ioredis does not handle a failure of its own attempt, and a process that stops
  // meanwhile would end by that.
  autoResubscribe: false,
  connectTimeout: connectTimeoutMs,
  socketTimeout: protocolTimes.redisSilenceMs,
  keepAlive: 30_000,
} satisfies ConnectionOptions;
const failing = { maxRetriesPerRequest: 0, enableOfflineQueue: false, commandTimeout: protocolTimes.redisCommandMs };
const waiting = { maxRetriesPerRequest: null, enableOfflineQueue: true };

interface Connection {
  name: string;
  redis: Redis;
  /** The run_id of the server at its other end; undefined until that has said it. */
  server: string | undefined;
  /** How many replicas it has found since it last found a primary, two at most. */
  replicasFound: number;
}

/**
 * The connections of one process to Redis. Each of them notices a Redis that vanished without closing it, as a host does
 * that lost its power or its network: a connection on which Redis leaves a command unanswered for `redisSilenceMs` is
 * closed and opened anew, which also looks up the host's address anew. A question on each connection once a second sees to
 * it that there is such a command.
 *
 * The connections belong together: what one writes another reads. So each asks its server who it is. Where one finds a
 * replica, all leave that server; where one finds another primary, the address has moved, and all others follow it.
 */
export class RedisConnections {
  readonly #url: string;
  /** Undefined if the URL leads to Redis itself. */
  readonly #sentinels: Sentinels | undefined;
  readonly #log: Log;
  readonly #shutdown: Shutdown;
  readonly #open = new Set<Connection>();
  readonly #warnOfReplica: (error: unknown) => void;
  /** The primary that a connection found last. */
  #server: string | undefined;
  #movedAtMs = Number.NEGATIVE_INFINITY;

  constructor(parts: { url: string; sentinelLogin?: SentinelLogin; log: Log; shutdown: Shutdown }) {
    this.#url = parts.url;
    this.#sentinels = sentinelsOf(parts);
    this.#log = parts.log;
    this.#shutdown = parts.shutdown;
    this.#warnOfReplica = throttledWarning(parts.log, "REDIS_URL leads to a replica: connecting again");
    const endChecks = actEvery(protocolTimes.redisPingMs, () => this.#check());
    parts.shutdown.register("redis checks", endChecks);
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

  /** The names of the connections that take no commands now, or are not at the primary that a connection found last. */
  notReady(): string[] {
    const missing = [...this.#open].filter(({ redis, server }) => redis.status !== "ready" || server !== this.#server);
    return [...new Set(missing.map(({ name }) => name))];
  }

  #connect(name: string, options: typeof failing | typeof waiting): Redis {
    const all: ConnectionOptions = {
      ...common,
      ...options,
      connectionName: `serpmill-${name}`,
      // After a failover the old primary refuses writes. Reconnect, and resend the refused command, which has not run.
      reconnectOnError: (error) => (error.message.startsWith("READONLY") ? 2 : false),
    };
    const redis = this.#sentinels ? new Redis({ ...all, ...this.#sentinels.options }) : new Redis(this.#url, all);
    redis.on("connect", () => shareWrites(redis.stream));
    redis.on("error", throttledWarning(this.#log, `error on the Redis connection ${name}`));
    this.#shutdown.register(`redis ${name}`, () => redis.disconnect());
    this.#watch(name, redis);
    return redis;
  }

  #watch(name: string, redis: Redis): Redis {
    const connection: Connection = { name, redis, server: undefined, replicasFound: 0 };
    this.#open.add(connection);
    redis.options.retryStrategy = (attempt) => reconnectAfterMs(attempt + connection.replicasFound);
    redis.on("ready", () => void this.#identify(connection));
    redis.on("close", () => {
      connection.server = undefined;
    });
    endOnlyOnPurpose(name, redis);
    // BullMQ's Worker makes copies of the connection that it gets, and works with these.
    const duplicate = redis.duplicate.bind(redis);
    redis.duplicate = (override) => this.#watch(name, duplicate(override));
    return redis;
  }

  #check(): void {
    this.#sentinels?.ask();
    this.#gather();
    // What one connection says of its server holds for the others there.
    const asked = new Set<string>();
    for (const connection of this.#open) {
      const { redis, server } = connection;
      if (redis.status !== "ready") continue;
      if (server !== undefined && asked.has(server)) void redis.ping().catch(() => undefined);
      else void this.#identify(connection);
      if (server !== undefined) asked.add(server);
    }
  }

  /** Asks a connection's server who it is. If that fails, the connection is closed already or will be. Never rejects. */
  async #identify(connection: Connection): Promise<void> {
    const info = await connection.redis.info("server", "replication").catch(() => "");
    const server = /^run_id:(\w+)/m.exec(info)?.[1];
    // Without a server it is a user who may not read INFO.
    if (server === undefined || connection.redis.status !== "ready") return;
    const isNew = connection.server !== server;
    connection.server = server;
    if (/^role:slave/m.test(info)) {
      connection.replicasFound = Math.min(connection.replicasFound + 1, replicasCountedMax);
      this.#warnOfReplica(new Error(`the Redis connection ${connection.name} is at a replica`));
      this.#leave(({ server: at }) => at === server);
      return;
    }
    connection.replicasFound = 0;
    if (!isNew) return;
    this.#server = server;
    this.#gather();
  }

  /** Moves the connections that are elsewhere to the server that was found last, or wherever the address leads now. */
  #gather(): void {
    const isElsewhere = ({ server }: Connection) => server !== undefined && server !== this.#server;
    if (![...this.#open].some(isElsewhere) || performance.now() - this.#movedAtMs < moveEveryMs) return;
    this.#movedAtMs = performance.now();
    this.#log.warn("REDIS_URL leads to another server: all connections move to it");
    this.#leave(isElsewhere);
  }

  #leave(isLeaving: (connection: Connection) => boolean): void {
    for (const connection of [...this.#open].filter(isLeaving)) connection.redis.disconnect(true);
  }
}

function sentinelsOf(parts: { url: string; sentinelLogin?: SentinelLogin; log: Log; shutdown: Shutdown }) {
  const address = readRedisAddress(parts.url);
  if (address?.primaryName === undefined) return undefined;
  const { primaryName } = address;
  const options = { ...common, ...failing, enableReadyCheck: false, retryStrategy: (n: number) => reconnectAfterMs(n) };
  return new Sentinels({ ...parts, address, primaryName, login: parts.sentinelLogin ?? {}, options });
}

/**
 * ioredis never connects again once it has ended a connection, and fails each command at once. That ends the process, unless
 * we closed the connection: the supervisor starts it anew.
 *
 * Two calls that would close a connection to open it anew are left out. One that is connecting already would end. And a replica
 * refuses each of many commands that are under way, for each of which ioredis closes the connection, with one more listener on
 * the stream: the first time is enough.
 */
function endOnlyOnPurpose(name: string, redis: Redis): void {
  let isClosed = false;
  const disconnect = redis.disconnect.bind(redis);
  redis.disconnect = (willReconnect = false) => {
    const isOpen = ["connect", "ready"].includes(redis.status) && !redis.stream.writableEnded;
    if (willReconnect && !isOpen) return;
    isClosed ||= !willReconnect;
    disconnect(willReconnect);
  };
  redis.on("end", () => {
    if (!isClosed) throw new Error(`the Redis connection ${name} has ended`);
  });
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
