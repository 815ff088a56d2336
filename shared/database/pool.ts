import pg from "pg";
import type { Shutdown } from "../process/shutdown.ts";
import type { Log } from "../log.ts";
import { canBecomeMore, processRole } from "./process-login.ts";

export type Database = pg.Pool;

const connectTimeoutMs = 2_000;
const usualStatementTimeoutMs = 5_000;
const lockTimeoutMs = 2_000;
const idleInTransactionTimeoutMs = 10_000;
// Beyond the statement's own timeout, so that the server ends a slow statement and the connection stays usable.
const queryTimeoutLeadMs = 2_000;

/**
 * Opens a pool of a process. Every connection takes the role `serpmill`, which can only call the ledger's functions, and
 * every wait has a timeout. A login that could become more is logged as a warning, once per process. A connection that breaks
 * is replaced, idle or in use; it does not end the process.
 */
export function openDatabase(options: {
  url: string;
  name: string;
  sizeMax: number;
  /** How long Postgres may work on one statement. */
  statementTimeoutMs?: number;
  log: Log;
  shutdown: Shutdown;
}): Database {
  const { statementTimeoutMs = usualStatementTimeoutMs } = options;
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: `serpmill-${options.name}`,
    max: options.sizeMax,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: 30_000,
    maxLifetimeSeconds: 1_800,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    statement_timeout: statementTimeoutMs,
    lock_timeout: lockTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    query_timeout: statementTimeoutMs + queryTimeoutLeadMs,
    types: { getTypeParser: readType },
    onConnect: async (client) => {
      await client.query(`set role ${processRole}`);
      await warnOfMore(client, options.log);
    },
  });
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle connection to Postgres broke"));
  // While a connection is in use, its next query tells that it broke. Without a listener the process would end.
  pool.on("connect", (client) => void client.on("error", () => undefined));
  pool.on("release", (error: unknown) => {
    if (isReadTimeout(error)) void replaceIdle(pool);
  });
  options.shutdown.register(`database ${options.name}`, () => pool.end());
  return pool;
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

/** Closes the idle connections. After a vanished host they would each cost another query its time. */
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
