import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startPostgres } from "../../../shared/local/postgres.ts";
import type { LocalServer, LocalServerOptions } from "../../../shared/local/local-server.ts";

let server: LocalServer; // For the tests that leave it as it is.
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

const shutdown: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (let close = shutdown.pop(); close !== undefined; close = shutdown.pop()) await close();
});

test("a private Postgres speaks UTF8 in locale C and UTC, whatever the machine's own settings are", async () => {
  expect(await ask(server, "show server_encoding")).toBe("UTF8");
  expect(await ask(server, "show timezone")).toBe("UTC");
  expect(await ask(server, "select datcollate from pg_database where datname = current_database()")).toBe("C");
  expect(await ask(server, "show listen_addresses")).toBe("127.0.0.1");
});

test("nobody gets into a private Postgres without the password in its folder", async () => {
  const url = new URL(server.url);
  url.password = "guessed";
  await expect(ask({ url: url.href }, "select 1")).rejects.toThrow("password authentication failed");
});

test("a throwaway Postgres leaves no folder behind", async () => {
  const throwaway = await start({});
  expect(existsSync(throwaway.folder)).toBe(true);
  await throwaway.stop();
  expect(existsSync(throwaway.folder)).toBe(false);
});

test("stopped and started again on the same folder and port, Postgres has its data", async () => {
  const folder = await newFolder();
  const first = await start({ folder, durable: true });
  await ask(first, "create table kept as select 42 as answer");
  await first.stop();
  const second = await start({ folder, durable: true, port: first.port });
  expect(second.url).toBe(first.url);
  expect(await ask(second, "select answer from kept")).toBe(42);
});

test("killed with SIGKILL, Postgres starts again at once and has every commit it acknowledged", async () => {
  const folder = await newFolder();
  const first = await start({ folder });
  await ask(first, "create table kept as select 42 as answer");
  first.kill("SIGKILL");
  expect(await first.exited).toBe("signal SIGKILL");
  const second = await start({ folder, port: first.port });
  expect(await ask(second, "select answer from kept")).toBe(42);
});

test("a process id file that names a process of somebody else does not block the start", async () => {
  const folder = await newFolder();
  const first = await start({ folder });
  await first.stop();
  await writeFile(join(first.folder, "data", "postmaster.pid"), `${process.pid}\n`);
  const second = await start({ folder });
  expect(await ask(second, "select 1 as one")).toBe(1);
});

test("a second Postgres on the same folder is refused, and the first one keeps running", async () => {
  const folder = await newFolder();
  const first = await start({ folder });
  await expect(startPostgres({ folder })).rejects.toThrow(`as process ${first.pid}. Is it started twice`);
  expect(await ask(first, "select 1 as one")).toBe(1);
});

test("a taken port is named when Postgres cannot have it", async () => {
  await expect(startPostgres({ port: server.port })).rejects.toThrow(`another program uses port ${server.port}`);
});

test("a Postgres that cannot start says why with the end of its log", async () => {
  const folder = await newFolder();
  const first = await start({ folder });
  await first.stop();
  await writeFile(join(first.folder, "data", "postgresql.conf"), "no_such_setting = on\n");
  await expect(startPostgres({ folder })).rejects.toThrow("no_such_setting");
});

async function start(options: LocalServerOptions): Promise<LocalServer> {
  const started = await startPostgres(options);
  shutdown.push(started.stop);
  return started;
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "serpmill-test-"));
  shutdown.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function ask({ url }: Pick<LocalServer, "url">, sql: string): Promise<unknown> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query({ text: sql, rowMode: "array" });
    return rows[0]?.[0];
  } finally {
    await client.end();
  }
}
