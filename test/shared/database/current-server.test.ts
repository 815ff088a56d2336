import { readFile } from "node:fs/promises";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { createProcessLogin } from "../../../shared/database/process-login.ts";
import { migrate } from "../../../shared/database/migrate.ts";
import { openDatabase } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { withoutHaproxy } from "../../harness/servers/haproxy.ts";
import { type PostgresPair, startPostgresPair, withoutPostgresPair } from "../../harness/servers/postgres-pair.ts";
import { startPostgresProxy } from "../../harness/servers/postgres-proxy.ts";
import { startProxy } from "../../harness/servers/proxy.ts";

/** A pool whose address moves from a primary to its standby, as DNS, a virtual address or a proxy does it. */

const log = openLog({ name: "test", level: "silent" });
// So that no time-out of a statement ends what waits.
const statementTimeoutMs = 600_000;

/** Pools at an address of both servers, which end with the test. */
function openPools(url: string, closeAddress: () => Promise<void>) {
  const shutdown = new Shutdown();
  onTestFinished(async () => {
    await shutdown.run(log);
    await closeAddress();
  });
  const open = (sizeMax: number) =>
    openDatabase({ url: processUrlOf(url), name: "test", sizeMax, statementTimeoutMs, log, shutdown });
  const pool = open(2);
  const serverPort = async () => (await pool.query("select inet_server_port() as port")).rows[0]?.port;
  return { open, pool, serverPort };
}

describe.skipIf(withoutPostgresPair !== "")(`a pool and a pair of servers${withoutPostgresPair}`, () => {
  let pair: PostgresPair;
  beforeEach(async () => {
    pair = await startPostgresPair({ isSynchronous: true });
    await migrate(pair.primary.url);
    await createProcessLogin(pair.primary.url, processUrlOf(pair.primary.url));
  });
  afterEach(() => pair.close());

  test("goes on without its standby, and waits for it again, by the statements of the runbook", async () => {
    const runbook = await readFile("docs/operating/runbook.md", "utf8");
    const statements = runbook.match(/(?<=`)alter system (re)?set [^`]+/g);
    expect(statements).toHaveLength(2);
    const states = ["async", "sync"] as const;
    for (const [at, state] of states.entries()) {
      await asOwner(pair.primary.url, async (client) => {
        await client.query(statements?.[at] ?? "");
        await client.query("select pg_reload_conf()");
      });
      await eventually(() => pair.isReplicating(state));
    }
  });

  test("refuses a standby until it is promoted, and then leaves a primary that vanished, also where a query waits for it", async () => {
    const address = await startProxy(pair.primary.url);
    const { open, pool, serverPort } = openPools(address.url, address.close);
    await Promise.all(Array.from({ length: 2 }, () => pool.query("select pg_sleep(0.1)")));
    expect(await serverPort()).toBe(pair.primary.port);

    address.lead(pair.standby.url);
    const atStandby = open(1);
    await expect(atStandby.query("select 1")).rejects.toThrow("the connection leads to a standby");
    expect(await serverPort()).toBe(pair.primary.port);

    address.replaceHost();
    const waiting = pool.query("select 1");
    void waiting.catch(() => undefined); // It is awaited below.
    await pair.promote();
    await expect(waiting).rejects.toThrow("Connection terminated");
    await eventually(async () => (await atStandby.query("select 1 as n")).rows[0]?.n === 1);
    expect(await Promise.all([serverPort(), serverPort()])).toEqual([pair.standby.port, pair.standby.port]);
  });

  test.skipIf(withoutHaproxy !== "")(
    `follows the promoted standby behind HAProxy as shipped, also where the old primary is frozen${withoutHaproxy}`,
    async () => {
      const proxy = await startPostgresProxy(pair);
      const { pool, serverPort } = openPools(proxy.url, proxy.close);
      expect(await serverPort()).toBe(pair.primary.port);
      pair.freezePrimary();
      const waiting = pool.query("select 1");
      void waiting.catch(() => undefined); // It is awaited below.
      await pair.promote();
      await eventually(async () => (await serverPort()) === pair.standby.port);
      await expect(waiting).rejects.toThrow("Connection terminated");
    },
  );
});
