import { connect, type Socket } from "node:net";
import { connect as connectEncrypted } from "node:tls";
import { AbstractConnector, Redis, type RedisOptions } from "ioredis";
import type { Shutdown } from "../concurrency/shutdown.ts";
import type { RedisAddress, Server } from "../config/redis-address.ts";
import { type Log, throttledWarning } from "../log.ts";
import { z } from "zod";
import { protocolTimes } from "../protocol-times.ts";

const switched = "+switch-master";

/** ioredis' own type is a union of two types of replies; a connection must have one of them. */
export type ConnectionOptions = Omit<RedisOptions, "replyMapping">;

/** How a process logs in to the Sentinels, which have users of their own. */
export interface SentinelLogin {
  username?: string | undefined;
  password?: string | undefined;
}

interface Sentinel extends Server {
  redis: Redis;
  /** Undefined while it does not answer, and if it knows no such primary. */
  answer: Answer | undefined;
}

/** Where the primary is, as of a configuration. A later configuration has a higher number. */
interface Answer extends Server {
  epoch: number;
}

/**
 * The Sentinels of a process. It has one connection to each of them, asks all once a second, and at once when one says that it
 * switched. It believes the newest configuration, so that a Sentinel which is frozen or cut off from the others delays nothing,
 * and tells all connections of the process the same. When no Sentinel answers any more, the last primary stays the primary.
 *
 * Not ioredis' own connector: there each connection asks for itself, one Sentinel after the other, believes the first, and does
 * not connect again without a Sentinel.
 */
export class Sentinels {
  /** Of a connection to the primary. */
  readonly options: ConnectionOptions;
  readonly #name: string;
  readonly #isEncrypted: boolean;
  readonly #sentinels: readonly Sentinel[];
  readonly #connectors = new Set<PrimaryConnector>();
  #primary: Server | undefined;

  constructor(parts: {
    address: RedisAddress;
    primaryName: string;
    login: SentinelLogin;
    /** Deadlines of a connection, and when it is opened anew. */
    options: ConnectionOptions;
    log: Log;
    shutdown: Shutdown;
  }) {
    const { address, login } = parts;
    const tls = address.isEncrypted ? { tls: {} } : {};
    this.#name = parts.primaryName;
    this.#isEncrypted = address.isEncrypted;
    this.options = {
      ...tls,
      ...(address.username !== undefined && { username: address.username }),
      ...(address.password !== undefined && { password: address.password }),
      Connector: connectorTo(this),
    };
    this.#sentinels = address.servers.map((server) => {
      const { username, password } = login;
      const own = { ...server, ...tls, ...(username && { username }), ...(password && { password }) };
      return this.#open(server, new Redis({ ...parts.options, ...own }), parts);
    });
  }

  /** Asks all Sentinels. */
  ask(): void {
    for (const sentinel of this.#sentinels) if (sentinel.redis.status === "ready") void this.#ask(sentinel);
  }

  /** Opens a socket to the primary, or does so once there is one. */
  connect(connector: PrimaryConnector): void {
    this.#connectors.add(connector);
    if (this.#primary) connector.connectTo(this.#primary, this.#isEncrypted);
  }

  forget(connector: PrimaryConnector): void {
    this.#connectors.delete(connector);
  }

  #open(server: Server, redis: Redis, { log, shutdown }: { log: Log; shutdown: Shutdown }): Sentinel {
    const sentinel: Sentinel = { ...server, redis, answer: undefined };
    const warn = throttledWarning(log, "error on the connection to a Sentinel");
    redis.on("ready", () => {
      redis.subscribe(switched).catch(() => undefined); // It is asked once a second as well.
      void this.#ask(sentinel);
    });
    redis.on("message", () => void this.#ask(sentinel));
    redis.on("close", () => (sentinel.answer = undefined));
    redis.on("error", (error: Error) => {
      const explained = explain(sentinel, error);
      warn(explained);
      this.#report(explained);
    });
    shutdown.register(`Sentinel ${server.host}`, () => redis.disconnect());
    return sentinel;
  }

  /** Asks one Sentinel. Never rejects: one that does not answer is disconnected by its time-out. */
  async #ask(sentinel: Sentinel): Promise<void> {
    const { redis } = sentinel;
    try {
      // During a failover the first one still has the old address, which is why the second one is asked too.
      const [state, address] = await Promise.all([
        redis.call("SENTINEL", "MASTER", this.#name),
        redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", this.#name),
      ]);
      sentinel.answer = readAnswer(state, address);
      this.#follow();
    } catch (error) {
      sentinel.answer = undefined;
      if (error instanceof Error) sentinel.redis.emit("error", error);
    }
  }

  /** Believes the newest answer, and ends the connections that lead elsewhere: they connect again, to the new primary. */
  #follow(): void {
    const answers = this.#sentinels.flatMap(({ answer }) => answer ?? []);
    const newest = answers.toSorted((one, other) => other.epoch - one.epoch)[0];
    if (!newest || (newest.host === this.#primary?.host && newest.port === this.#primary.port)) return;
    this.#primary = newest;
    for (const connector of this.#connectors) connector.connectTo(newest, this.#isEncrypted);
  }

  /** Tells the connections that wait for a primary why they do. */
  #report(error: Error): void {
    if (this.#primary) return;
    for (const connector of this.#connectors) connector.report(error);
  }
}

/** Opens the sockets of one connection to the primary. */
class PrimaryConnector extends AbstractConnector {
  readonly #sentinels: Sentinels;
  #opening: PromiseWithResolvers<Socket> | undefined;
  #emit: (type: string, error: Error) => void = () => undefined;
  #socket: Socket | undefined;

  constructor(sentinels: Sentinels) {
    super(protocolTimes.redisSilenceMs);
    this.#sentinels = sentinels;
  }

  override connect(emit: (type: string, error: Error) => void): Promise<Socket> {
    this.#emit = emit;
    const opening = Promise.withResolvers<Socket>();
    this.#opening = opening;
    this.#sentinels.connect(this);
    return opening.promise;
  }

  /** Opens the socket that ioredis waits for, or ends the one that it has. */
  connectTo({ host, port }: Server, isEncrypted: boolean): void {
    const opening = this.#opening;
    this.#opening = undefined;
    if (!opening) {
      // Not ended in order, which would wait for a server that may be gone.
      this.#socket?.destroy();
      return;
    }
    const socket = isEncrypted ? connectEncrypted({ host, port }) : connect({ host, port });
    socket.once("error", (error) => (this.firstError = error));
    this.#socket = socket;
    this.stream = socket;
    opening.resolve(socket);
  }

  report(error: Error): void {
    if (this.#opening) this.#emit("error", error);
  }

  override disconnect(): void {
    this.#sentinels.forget(this);
    this.#opening?.reject(new Error("Connection is closed."));
    this.#opening = undefined;
    super.disconnect();
  }
}

const connectorTo = (sentinels: Sentinels) =>
  class extends PrimaryConnector {
    constructor() {
      super(sentinels);
    }
  };

/** @throws if it is no answer of a Sentinel. */
function readAnswer(state: unknown, address: unknown): Answer {
  const fields = texts.parse(state);
  const [host, port] = texts.parse(address);
  const epoch = fields[fields.indexOf("config-epoch") + 1];
  return answer.parse({ host, port, epoch });
}

const texts = z.array(z.string());
const answer = z.object({ host: z.string(), port: z.coerce.number(), epoch: z.coerce.number() });

/** Names the Sentinel, and the setting that an operator has to look at. */
function explain({ host, port }: Server, error: Error): Error {
  const [, setting] = hints.find(([pattern]) => pattern.test(error.message)) ?? [];
  return new Error(`the Sentinel at ${host}:${port}: ${error.message}${setting === undefined ? "" : ` (${setting})`}`);
}

const hints: readonly (readonly [RegExp, string])[] = [
  [/No such master/, "expected the name of a primary that the Sentinels watch at the end of REDIS_URL"],
  [
    /WRONGPASS|NOAUTH|NOPERM|without any password/,
    "expected a user of the Sentinels in SENTINEL_USERNAME and SENTINEL_PASSWORD",
  ],
];
