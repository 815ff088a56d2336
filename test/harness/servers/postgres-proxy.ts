import { Client } from "pg";
import { freePort } from "../../../local/ports.ts";
import { eventually } from "../assertions/eventually.ts";
import { listen, type Listening } from "../stubs/listen.ts";
import { asOwner } from "./as-owner.ts";
import { startHaproxy } from "./haproxy.ts";
import type { PostgresPair } from "./postgres-pair.ts";

/** As many as the shipped configuration has. */
const serversMax = 3;
const askTimeoutMs = 1_000;

export interface PostgresProxy {
  /** The one address of both servers, for the owner of the database. */
  url: string;
  close: () => Promise<void>;
}

/** Starts HAProxy in front of both servers with the shipped configuration: only addresses and ports differ. */
export async function startPostgresProxy({ primary, standby }: PostgresPair): Promise<PostgresProxy> {
  const [patroni, other] = await Promise.all([startPatroniStub(primary.url), startPatroniStub(standby.url)]);
  const port = await freePort();
  const haproxy = await startHaproxy({
    config: "deploy/proxy/postgres.cfg",
    changes: {
      "bind 127.0.0.1:5432": `bind 127.0.0.1:${port}`,
      "postgres-1:5432": `127.0.0.1:${primary.port} port ${new URL(patroni.url).port}`,
      "postgres-2:5432": `127.0.0.1:${standby.port} port ${new URL(other.url).port}`,
    },
  });
  const close = async () => {
    await haproxy.stop();
    await Promise.all([patroni.close(), other.close()]);
  };
  const url = Object.assign(new URL(primary.url), { port }).href;
  try {
    await eventually(() => leadsToPrimaryAlone(url));
    return { url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** At first HAProxy takes every server for one that is up, and connects to them in turn. */
async function leadsToPrimaryAlone(url: string): Promise<boolean> {
  for (let asked = 0; asked < serversMax; asked += 1) {
    const { rows } = await asOwner(url, "select pg_is_in_recovery() as is");
    if (rows[0]?.is !== false) return false;
  }
  return true;
}

/**
 * Stands in for Patroni beside one Postgres: `GET /primary` answers 200 while the server is a primary, and 503 otherwise. Patroni
 * also knows who has the lock of the leader; here the test promotes one server only.
 */
function startPatroniStub(postgresUrl: string): Promise<Listening> {
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
