import pg from "pg";
import type { Shutdown } from "../process/shutdown.ts";
import type { Log } from "../log.ts";

export type Database = pg.Pool;

const connectTimeoutMs = 2_000;
const usualStatementTimeoutMs = 5_000;
const lockTimeoutMs = 2_000;
const idleInTransactionTimeoutMs = 10_000;
// Beyond the statement's own timeout, so that the server ends a slow statement and the connection stays usable.
const queryTimeoutLeadMs = 2_000;

/**
 * Opens the pool of one process. Every connection takes the role `serpmill`, which cannot rewrite the ledger, and every
 * wait has a timeout. An idle connection that breaks is replaced; it does not crash the process.
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
      await client.query("set role serpmill");
    },
  });
  pool.on("error", (error) => options.log.warn({ err: error }, "an idle connection to Postgres broke"));
  options.shutdown.register(`database ${options.name}`, () => pool.end());
  return pool;
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
