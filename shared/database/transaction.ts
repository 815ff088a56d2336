import type pg from "pg";
import type { Database } from "./pool.ts";

/** What runs a statement: a pool, or the one connection of a transaction. */
export type Querying = Pick<pg.ClientBase, "query">;

/**
 * Runs statements as one transaction on one connection: all of them count, or none.
 * @param work uses only the connection that it gets: in a process with one connection another statement would wait for ever.
 * @throws what `work` or the commit throws. If the commit's reply is lost, the transaction may have been committed.
 */
export async function inTransaction<Result>(
  database: Database,
  work: (transaction: Querying) => Promise<Result>,
): Promise<Result> {
  const client = await database.connect();
  try {
    await client.query("begin");
    const result = await work(client);
    await client.query("commit");
    client.release();
    return result;
  } catch (error) {
    // The server rolls the transaction back when the connection ends.
    client.release(error instanceof Error ? error : true);
    throw error;
  }
}

/** Runs one statement of a long transaction. */
export type LongQuery = (text: string, values?: unknown[]) => Promise<pg.QueryResult<Record<string, unknown>>>;

const longStatementMs = 60_000;

/**
 * Runs a transaction whose statements may each take a minute: longer than those on the path of a search.
 * @param settings for this transaction alone, as `name = value`.
 */
export async function inLongTransaction<Result>(
  database: Database,
  settings: readonly string[],
  work: (query: LongQuery, transaction: Querying) => Promise<Result>,
): Promise<Result> {
  return inTransaction(database, async (transaction) => {
    const all = [`statement_timeout = ${longStatementMs}`, ...settings];
    await transaction.query(all.map((setting) => `set local ${setting}`).join("; "));
    // pg reads this option of a query, which its types lack: the pool's own limit is for searches.
    const limit: object = { query_timeout: longStatementMs };
    return work((text, values = []) => transaction.query({ text, values, ...limit }), transaction);
  });
}
