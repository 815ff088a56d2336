import { execFile } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { appendFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { startPostgres } from "../../local/postgres.ts";
import type { LocalServer, LocalServerOptions } from "../../local/local-server.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

const folders: GuardedFolder[] = [];
/** A folder with an initialised, stopped Postgres. Copies of it save most tests an initdb. */
const initialised = await emptyFolder();
await (await startPostgres({ folder: initialised })).stop();
/** For the tests that leave it as it is. */
const server = await startPostgres({ folder: await initialisedFolder() });
afterAll(async () => {
  await server.stop();
  for (const folder of folders) folder.remove();
});

test("a private Postgres speaks UTF8 in locale C and UTC, whatever the machine's own settings are", async () => {
  expect(await ask(server, "show server_encoding")).toBe("UTF8");
  expect(await ask(server, "show timezone")).toBe("UTC");
  expect(await ask(server, "select datcollate from pg_database where datname = current_database()")).toBe("C");
  expect(await ask(server, "show listen_addresses")).toBe("127.0.0.1");
});

test("a private Postgres requires the password in its folder", async () => {
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

test.skipIf(!existsSync("/proc/self/maps"))(
  "a throwaway Postgres that is killed leaves no shared memory behind",
  async () => {
    const throwaway = await start({});
    const maps = readFileSync(`/proc/${throwaway.pid}/maps`, "utf8");
    const shared = [...maps.matchAll(/ rw-s .* (\/.+)$/gm)].map(([, path = ""]) => path);
    expect(shared.filter((path) => existsSync(path))).not.toEqual([]);
    throwaway.kill("SIGKILL");
    await throwaway.stop();
    expect(shared.filter((path) => existsSync(path))).toEqual([]);
  },
);

test("a Postgres that is stopped and restarted on the same folder and port keeps its data", async () => {
  const folder = await initialisedFolder();
  const first = await start({ folder, durable: true });
  await ask(first, "create table kept as select 42 as answer");
  await first.stop();
  const second = await start({ folder, durable: true, port: first.port });
  expect(second.url).toBe(first.url);
  expect(await ask(second, "select answer from kept")).toBe(42);
});

test("a Postgres that is killed restarts at once with every acknowledged commit", async () => {
  const folder = await initialisedFolder();
  const first = await start({ folder });
  await ask(first, "create table kept as select 42 as answer");
  first.kill("SIGKILL");
  expect(await first.exited).toBe("signal SIGKILL");
  const second = await start({ folder, port: first.port });
  expect(await ask(second, "select answer from kept")).toBe(42);
});

test("a process id file with the id of another process does not block the start", async () => {
  const folder = await initialisedFolder();
  const first = await start({ folder });
  await first.stop();
  await writeFile(join(first.folder, "data", "postmaster.pid"), `${process.pid}\n`);
  const second = await start({ folder });
  expect(await ask(second, "select 1 as one")).toBe(1);
});

test("a second Postgres on the same folder is refused, and the first one keeps running", async () => {
  const folder = await initialisedFolder();
  const first = await start({ folder });
  await expect(startPostgres({ folder })).rejects.toThrow(`as process ${first.pid}. Was it started twice`);
  expect(await ask(first, "select 1 as one")).toBe(1);
});

test("the error of a Postgres whose port is in use names the port", async () => {
  const folder = await initialisedFolder();
  await expect(startPostgres({ folder, port: server.port })).rejects.toThrow(
    `another program uses port ${server.port}`,
  );
});

test("the error of a Postgres that cannot start has the end of its log", async () => {
  const folder = await initialisedFolder();
  const first = await start({ folder });
  await first.stop();
  await writeFile(join(first.folder, "data", "postgresql.conf"), "no_such_setting = on\n");
  await expect(startPostgres({ folder })).rejects.toThrow("no_such_setting");
});

test("a private Postgres that dies while its database is created is a failed start", async () => {
  const folder = await initialisedFolder();
  const settings = join(folder, "data", "postgresql.conf");
  await appendFile(settings, "max_prepared_transactions = 1\n");
  const first = await start({ folder });
  const owner = { url: new URL("/postgres", first.url).href };
  await ask(owner, "drop database serpmill");
  // A prepared transaction keeps its lock across the restart, so that the database is not created before the kill.
  await asOwner(owner.url, (client) =>
    client.query("begin; lock pg_database in exclusive mode; prepare transaction 'held'"),
  );
  await first.stop();
  const second = startPostgres({ folder, port: first.port });
  let creator: unknown;
  await eventually(async () => {
    creator = await ask(owner, "select pid from pg_stat_activity where query like 'create database%'");
    return creator !== undefined;
  });
  process.kill(Number(creator), "SIGKILL");
  await expect(second).rejects.toThrow("Connection terminated");
});

async function start(options: LocalServerOptions): Promise<LocalServer> {
  const started = await startPostgres(options);
  onTestFinished(started.stop);
  return started;
}

async function emptyFolder(): Promise<string> {
  const folder = await GuardedFolder.create("serpmill-test-");
  folders.push(folder);
  return folder.path;
}

async function initialisedFolder(): Promise<string> {
  const folder = await emptyFolder();
  // cp -a keeps the owner: where the tests run as root, Postgres runs as another user.
  await promisify(execFile)("cp", ["-a", `${initialised}/.`, folder]);
  return folder;
}

async function ask({ url }: Pick<LocalServer, "url">, sql: string): Promise<unknown> {
  const { rows } = await asOwner(url, (client) => client.query({ text: sql, rowMode: "array" }));
  return rows[0]?.[0];
}
