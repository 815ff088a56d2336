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
