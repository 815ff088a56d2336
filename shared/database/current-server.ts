import pg from "pg";
import { z } from "zod";
import { type Log, throttledWarning } from "../log.ts";

/** After this time without an answer, the server may have vanished: its host lost its power or its network. */
const silentMs = 1_500;
const askTimeoutMs = 1_000;

const identityRow = z.object({ is_standby: z.boolean(), server: z.string() });

/**
 * Keeps the connections of one pool at the server that the address leads to now. A failover moves the address to the promoted
 * standby. Connections to a server that vanished are not closed, and a query on one would wait for its whole timeout. So while
 * one waits, a new connection is opened beside the pool. If another server answers there, all connections leave the old one.
 *
 * A standby is refused: it shows what was committed some time ago, and takes no charge.
 */
export class CurrentServer {
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
    pool.on("connect", (client) => void this.#open.add(client));
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
    const { is_standby: isStandby, server } = identityRow.parse(rows[0]);
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
