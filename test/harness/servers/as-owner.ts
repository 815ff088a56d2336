import pg from "pg";

/** Uses a connection as the database's owner, or runs one statement so, for what the processes' role may not do. */
export async function asOwner<T>(databaseUrl: string, use: (client: pg.Client) => Promise<T>): Promise<T>;
export async function asOwner(databaseUrl: string, statement: string, values?: unknown[]): Promise<pg.QueryResult>;
export async function asOwner<T>(
  databaseUrl: string,
  use: string | ((client: pg.Client) => Promise<T>),
  values?: unknown[],
): Promise<T | pg.QueryResult> {
  const client = new pg.Client({ connectionString: databaseUrl });
  // A fault may end this connection between two statements. The next one fails then, and says so.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await (typeof use === "string" ? client.query(use, values) : use(client));
  } finally {
    await client.end();
  }
}
