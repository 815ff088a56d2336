import { expect, onTestFinished, test } from "vitest";
import { openDatabase } from "../../../shared/database/pool.ts";
import { openLog } from "../../../shared/log.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { startProxy } from "../../harness/servers/proxy.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";

const log = openLog({ name: "test", level: "silent" });

/** A new database. @returns its address, as its owner. */
async function freshUrl(): Promise<string> {
  const { url, drop } = await freshDatabase();
  onTestFinished(drop);
  return url;
}

/** A pool that ends with the test. */
function openPool(options: { url: string; sizeMax: number; statementTimeoutMs?: number }) {
  const shutdown = new Shutdown();
  onTestFinished(() => shutdown.run(log));
  return openDatabase({ ...options, name: "test", log, shutdown });
}

test("after Postgres' host vanished without closing its connections, one query fails and the next one is answered", async () => {
  const proxy = await startProxy(await freshUrl(), onTestFinished);
  const pool = openPool({ url: proxy.url, sizeMax: 3, statementTimeoutMs: 2_000 });
  await Promise.all(Array.from({ length: 3 }, () => pool.query("select pg_sleep(0.1)")));
  expect(pool.idleCount).toBe(3);

  proxy.replaceHost();
  await expect(pool.query("select 1")).rejects.toThrow("Query read timeout");
  expect((await pool.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
});

test("a connection that Postgres ends while it is taken does not end the process, and the pool replaces it", async () => {
  const url = await freshUrl();
  const pool = openPool({ url, sizeMax: 2 });
  const client = await pool.connect();
  const { rows } = await client.query("select pg_backend_pid() as pid");
  const ended = new Promise((resolve) => client.once("end", resolve));
  await asOwner(url, "select pg_terminate_backend($1)", [rows[0]?.pid]);
  await ended;
  await expect(client.query("select 1")).rejects.toThrow();
  client.release();
  expect((await pool.query("select 1 as n")).rows).toEqual([{ n: 1 }]);
});

test("after a write was refused because the server is read-only, no idle connection to it is used again", async () => {
  const url = await freshUrl();
  const pool = openPool({ url, sizeMax: 3 });
  // As sessions that a pooler keeps at a server that became a standby.
  const readOnly = "select set_config('default_transaction_read_only', 'on', false), pg_sleep(0.1)";
  await Promise.all(Array.from({ length: 3 }, () => pool.query(readOnly)));
  expect(pool.idleCount).toBe(3);

  const write = () => pool.query("create temporary table written (n int)");
  await expect(write()).rejects.toMatchObject({ code: "25006" });
  await Promise.all([write(), write(), write()]);
});

test("defaults of the server change nothing: transactions are read committed, statements are not compiled, and dates are read", async () => {
  const url = new URL(await freshUrl());
  url.searchParams.set("options", "-c default_transaction_isolation=serializable -c datestyle=German -c jit=on");
  const pool = openPool({ url: url.href.replaceAll("+", "%20"), sizeMax: 1 });
  const { rows } = await pool.query(
    "select current_setting('transaction_isolation') as isolation, current_setting('jit') as jit, timestamptz '2026-11-30 12:00+00' as at",
  );
  expect(rows).toEqual([{ isolation: "read committed", jit: "off", at: new Date("2026-11-30T12:00:00Z") }]);
});
