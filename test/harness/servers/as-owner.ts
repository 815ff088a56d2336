import pg from "pg";

/** Uses a connection as the database's owner, for statements that the processes' role may not run. */
export async function asOwner<T>(databaseUrl: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: databaseUrl });
  // A fault may end this connection between two statements. The next one fails then, and says so.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
