import { Client } from "pg";
import { listen, type Listening } from "./listen.ts";

const askTimeoutMs = 1_000;

/**
 * Stands in for Patroni beside one Postgres: `GET /primary` answers 200 while the server is a primary, and 503 otherwise. Patroni
 * also knows who has the lock of the leader; here the test promotes one server only.
 */
export function startPatroniStub(postgresUrl: string): Promise<Listening> {
  return listen((request, response) => {
    const asked = request.url === "/primary" ? isPrimary(postgresUrl) : Promise.resolve(false);
    void asked
      .catch(() => false)
      .then((isYes) => {
        response.writeHead(isYes ? 200 : 503).end();
      });
  });
}

async function isPrimary(postgresUrl: string): Promise<boolean> {
  const client = new Client({
    connectionString: postgresUrl,
    connectionTimeoutMillis: askTimeoutMs,
    query_timeout: askTimeoutMs,
  });
  client.on("error", () => undefined); // Its queries fail too.
  try {
    await client.connect();
    return (await client.query("select pg_is_in_recovery() as is")).rows[0]?.is === false;
  } finally {
    client.connection.stream.destroy(); // A server that answers nothing closes nothing.
  }
}
