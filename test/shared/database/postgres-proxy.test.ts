import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { createProcessLogin } from "../../../shared/database/process-login.ts";
import { migrate } from "../../../shared/database/migrate.ts";
import { type Database, openDatabase } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { withoutHaproxy } from "../../harness/servers/haproxy.ts";
import { PostgresPair, withoutPostgresPair } from "../../harness/servers/postgres-pair.ts";
import { type PostgresProxy, startPostgresProxy } from "../../harness/servers/postgres-proxy.ts";

/** The pool of a process behind HAProxy with the shipped configuration. */

const log = openLog({ name: "test", level: "silent" });
const without = withoutPostgresPair || withoutHaproxy;

describe.skipIf(without !== "")(`behind HAProxy${without}`, () => {
  let pair: PostgresPair;
  let proxy: PostgresProxy;
  let shutdown: Shutdown;
  let pool: Database;
  beforeAll(async () => {
    pair = await PostgresPair.start({ isSynchronous: true });
    await migrate(pair.primary.url);
    await createProcessLogin(pair.primary.url, processUrlOf(pair.primary.url));
    proxy = await startPostgresProxy(pair);
    shutdown = new Shutdown();
    pool = openDatabase({ url: processUrlOf(proxy.url), name: "test", sizeMax: 2, log, shutdown });
  });
  afterAll(async () => {
    await shutdown.run(log);
    await proxy.close();
    await pair.close();
  });

  const serverPort = async () => (await pool.query("select inet_server_port() as port")).rows[0]?.port;

  test("queries follow the promoted standby, also where the old primary is frozen", async () => {
    expect(await serverPort()).toBe(pair.primary.port);
    pair.freezePrimary();
    const waiting = pool.query("select 1");
    void waiting.catch(() => undefined); // It is awaited below.
    await pair.promote();
    await eventually(async () => (await serverPort()) === pair.standby.port);
    await expect(waiting).rejects.toThrow("Connection terminated");
  });
});
