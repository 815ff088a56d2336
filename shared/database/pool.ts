import pg from "pg";
import { z } from "zod";
import { retryWhile } from "../concurrency/retry.ts";
import type { Config } from "../config.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";
import { type Log, throttledWarning } from "../log.ts";
import {
  canBecomeMore,
  checkPooledLogin,
  checkSession,
  explainRefusal,
  sessionStart,
  usualLimits,
} from "./process-login.ts";
import { StartRefused } from "../config/start-refused.ts";
import { rowOf } from "./row.ts";
import { isReadOnly, isRefusedByChange } from "./transient-errors.ts";

export type Database = pg.Pool;

const usualConnectMs = 2_000;
// Beyond the statement's own timeout, so that the server ends a slow statement and the connection stays usable.
const queryTimeoutLeadMs = 2_000;
const repeatsMax = 3;
const repeatPauseMs = 50;
// The system then asks once a second whether the other end is there, and closes the connection after ten unanswered times.
const keepAliveAfterMs = 1_000;

/** Where the database of these settings is, for {@link openDatabase}. */
export const databaseOf = (config: Pick<Config, "DATABASE_URL" | "DATABASE_POOLER">) => {
  return { url: config.DATABASE_URL, isPooled: config.DATABASE_POOLER === "transaction" };
};

/**
 * Opens a pool of a process. Every connection takes the role `serpmill`, which can only call the ledger's functions, every
 * transaction is read committed, and every wait has a timeout. Behind a transaction pooler, the login role has all of this.
 * A login that could become more is logged as a warning, once per process. A connection that breaks is replaced, idle or in
 * use; it does not end the process. Without a pooler, all connections follow the address to another server.
 */
export function openDatabase(options: {
  url: string;
  name: string;
  sizeMax: number;
  /** Whether a pooler gives each transaction another session of Postgres. */
  isPooled?: boolean;
  /** How long a query waits for a connection, free or new. A search needs to fail soon, an operator's command to succeed. */
  connectTimeoutMs?: number | undefined;
  /** How long Postgres may work on one statement; unless pooled. */
  statementTimeoutMs?: number;
  log: Log;
  shutdown: Shutdown;
}): Database {
  const { statementTimeoutMs = usualLimits.statement_timeout, isPooled = false } = options;
  const limits = { ...usualLimits, statement_timeout: statementTimeoutMs };
  const connection = {
    connectionString: options.url,
    application_name: `serpmill-${options.name}`,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    types: { getTypeParser: readType },
  };
  // A pooler gives a query any of its sessions, so a connection to it tells nothing about the server.
  const server = isPooled ? undefined : new CurrentServer({ ...connection, ...limits }, options.log);
  let isChecked = false;
  const pool = new pg.Pool({
    ...connection,
    max: options.sizeMax,
    connectionTimeoutMillis: options.connectTimeoutMs ?? usualConnectMs,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: 1_800,
    ...(isPooled ? { Client: UnpreparedClient } : limits),
    query_timeout: statementTimeoutMs + queryTimeoutLeadMs,
    onConnect: async (client) => {
      await server?.identify(client);
      if (!isPooled) await client.query(sessionStart);
      if (!isChecked) await (isPooled ? checkPooledLogin(client) : checkSession(client));
      isChecked = true;
      if (!isPooled) await warnOfMore(client, options.log);
    },
  });
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle connection to Postgres broke"));
  // While a connection is in use, its next query tells that it broke. Without a listener the process would end.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  pool.on("release", (error: unknown) => {
    if (isReadTimeout(error) || isReadOnly(error)) void replaceIdle(pool);
  });
  server?.watch(pool);
  options.shutdown.register(`database ${options.name}`, () => pool.end());
  repeatRefused(pool);
  return pool;
}

/**
 * Repeats statements that met a migration. Each statement of the pool is a transaction of its own: if Postgres refuses it, it
 * has changed nothing.
 */
function repeatRefused(pool: pg.Pool): void {
  const query = pool.query.bind(pool);
  const queryRepeating = (...given: unknown[]) => {
    let repeats = 0;
    const mayRetry = (error: unknown) => isRefusedByChange(error) && ++repeats <= repeatsMax;
    return retryWhile({ pauseMs: repeatPauseMs, mayRetry }, () => Reflect.apply(query, pool, given));
  };
  Object.assign(pool, { query: queryRepeating });
}

/**
 * Asks Postgres once for a session.
 * @returns whether it could be reached; until it can, no query of the pool succeeds.
 * @throws {StartRefused} if its sessions lack what keeps the processes confined.
 */
export async function refuseUnconfined(database: Database): Promise<boolean> {
  try {
    await database.query("select");
    return true;
  } catch (error) {
    const explained = explainRefusal(error);
    if (explained instanceof StartRefused) throw explained;
    return false;
  }
}

/** Prepares no statement: the next transaction may get another session, which would not know it. */
class UnpreparedClient extends pg.Client {
  constructor(config?: pg.ClientConfig) {
    super(config);
    const query = this.query.bind(this);
    this.query = (first: unknown, ...rest: unknown[]) => Reflect.apply(query, this, [withoutName(first), ...rest]);
  }
}

function withoutName(query: unknown): unknown {
  if (typeof query !== "object" || query === null || !("name" in query)) return query;
  const { name: _name, ...unnamed } = query;
  return unnamed;
}

const checked = new WeakSet<Log>(); // A process has one log and may have several pools.

async function warnOfMore(client: pg.ClientBase, log: Log): Promise<void> {
  if (checked.has(log)) return;
  checked.add(log);
  const isMore = await canBecomeMore(client).catch((error: unknown) => {
    checked.delete(log); // The next connection tries again.
    throw error;
  });
  if (!isMore) return;
  log.warn(
    "DATABASE_URL logs in as a role that can do more than the processes need. Give it one of their own, and the owner to migrations as MIGRATION_DATABASE_URL: docs/operating/datastores.md",
  );
}

/** Whether Postgres gave no answer at all, not even that a statement takes too long: its host may have vanished. */
const isReadTimeout = (error: unknown) => error instanceof Error && error.message === "Query read timeout";

/** Closes the idle connections. After a vanished host, or at a server that was demoted, each would cost another query its time. */
async function replaceIdle(pool: pg.Pool): Promise<void> {
  const closing = Array.from({ length: pool.idleCount }, () => pool.connect().then((client) => client.release(true)));
  await Promise.allSettled(closing);
}

// Constraints keep mils and versions within safe integers; sums over them are checked here.
function readType(oid: Parameters<typeof pg.types.getTypeParser>[0], format: "text" | "binary" = "text") {
  if (oid !== pg.types.builtins.INT8) return pg.types.getTypeParser(oid, format);
  return (text: string) => {
    const value = Number(text);
    if (!Number.isSafeInteger(value))
      throw new RangeError(`the database returned ${text}, which is not a safe integer`);
    return value;
  };
}

/** After this time without an answer, the server may have vanished: its host lost its power or its network. */
const silentMs = 1_500;
const askTimeoutMs = 1_000;

const identityRow = rowOf({ isStandby: z.boolean(), server: z.string() });

/**
 * Keeps the connections of one pool at the server that the address leads to now. A failover moves the address to the promoted
 * standby. Connections to a server that vanished are not closed, and a query on one would wait for its whole timeout. So while
 * one waits, a new connection is opened beside the pool. If another server answers there, all connections leave the old one.
 *
 * A standby is refused: it shows what was committed some time ago, and takes no charge.
 */
class CurrentServer {
  readonly #options: pg.ClientConfig;
  readonly #log: Log;
  readonly #warnOfStandby: (error: unknown) => void;
  readonly #open = new Set<pg.PoolClient>();
  readonly #servers = new WeakMap<pg.ClientBase, string>();
  readonly #taken = new Map<pg.PoolClient, NodeJS.Timeout>();
  #current = "";
  #isAsking = false;

  /** @param options of a connection beside the pool. */
  constructor(options: pg.ClientConfig, log: Log) {
    this.#options = { ...options, connectionTimeoutMillis: askTimeoutMs, query_timeout: askTimeoutMs };
    this.#log = log;
    this.#warnOfStandby = throttledWarning(log, "DATABASE_URL leads to a standby: connecting again");
  }

  watch(pool: pg.Pool): void {
    pool.on("connect", (client) => {
      this.#open.add(client);
      // Another connection may have met another server since this one was identified.
      this.#leaveOthers();
    });
    pool.on("remove", (client) => void this.#open.delete(client));
    pool.on("acquire", (client) => {
      const asking = setInterval(() => void this.#ask(), silentMs);
      this.#taken.set(client, asking.unref());
    });
    pool.on("release", (_error, client) => {
      clearInterval(this.#taken.get(client));
      this.#taken.delete(client);
    });
  }

  /** Asks a new connection who its server is. @throws if that is a standby. */
  async identify(client: pg.ClientBase): Promise<void> {
    // No two servers were started in the same microsecond.
    const { rows } = await client.query(
      "select pg_is_in_recovery() as is_standby, pg_postmaster_start_time()::text as server",
    );
    const { isStandby, server } = identityRow.parse(rows[0]);
    if (isStandby) {
      const error = new Error("the connection leads to a standby of Postgres");
      this.#warnOfStandby(error);
      throw error;
    }
    this.#servers.set(client, server);
    this.#current = server;
    this.#leaveOthers();
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) return;
    this.#isAsking = true;
    const client = new pg.Client(this.#options);
    client.on("error", () => undefined); // What waits for the client gets the error too.
    try {
      await client.connect();
      await this.identify(client);
      void client.end();
    } catch {
      client.connection.stream.destroy(); // No server answers as the primary. The query that waits asks again.
    } finally {
      this.#isAsking = false;
    }
  }

  /** Breaks the connections to other servers. Their queries fail as if the server had closed them, and the pool opens new ones. */
  #leaveOthers(): void {
    const elsewhere = [...this.#open].filter((client) => this.#servers.get(client) !== this.#current);
    if (elsewhere.length === 0) return;
    this.#log.warn("DATABASE_URL leads to another server, or it was restarted: all connections move to it");
    for (const client of elsewhere) client.connection.stream.destroy();
  }
}
