import { freePort } from "../../../local/ports.ts";
import { eventually } from "../assertions/eventually.ts";
import { startPatroniStub } from "../stubs/patroni-stub.ts";
import { asOwner } from "./as-owner.ts";
import { startHaproxy } from "./haproxy.ts";
import type { PostgresPair } from "./postgres-pair.ts";

/** As many as the shipped configuration has. */
const serversMax = 3;

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
    const { rows } = await asOwner(url, (client) => client.query("select pg_is_in_recovery() as is"));
    if (rows[0]?.is !== false) return false;
  }
  return true;
}
