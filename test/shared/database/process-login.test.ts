import pg from "pg";
import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { migrate } from "../../../shared/database/migrate.ts";
import { openDatabase } from "../../../shared/database/pool.ts";
import { createProcessLogin } from "../../../shared/database/process-login.ts";
import { processUrlOf, startPostgres } from "../../../local/postgres.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { run } from "../../harness/processes/run.ts";
import { readSource } from "../../harness/assertions/sources.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

/** The owner of the database, who is no superuser, and the role as which the processes log in. */

const server = await startPostgres();
// As in docker compose, but for the last statement, which would lock the test out.
const [createRole = "", createDatabase = ""] = readSource("deploy/postgres/owner.sh").match(/^create .*$/gm) ?? [];
await asOwner(server.url, async (client) => {
  await client.query(createRole.replace(":'password'", "'keeps'"));
  await client.query(createDatabase.replace("database serpmill", "database one"));
});
const { ownerUrl, processUrl } = urlsOf("one");
afterAll(() => server.stop());

function urlsOf(name: string) {
  const [owner, login] = [new URL(server.url), new URL(processUrlOf(server.url))];
  Object.assign(owner, { username: "owner", password: "keeps", pathname: name });
  login.pathname = name;
  return { ownerUrl: owner.href, processUrl: login.href };
}

/** As a process, which says what it did. */
const migrateAs = (urls: { ownerUrl: string; processUrl: string }) =>
  run("shared/database/migrate.ts", [], { DATABASE_URL: urls.processUrl, MIGRATION_DATABASE_URL: urls.ownerUrl });

test("the first migration creates the role as which the processes log in, and another one changes nothing", async () => {
  const first = await migrateAs({ ownerUrl, processUrl });
  expect(first).toMatchObject({ exitCode: 0, stderr: "" });
  expect(first.stdout).toContain("created the role serpmill_app, as which the processes log in");
  expect(await migrateAs({ ownerUrl, processUrl })).toMatchObject({
    exitCode: 0,
    stdout: "the database is up to date\n",
  });
});

test("the login has settings of its own, and a migration leaves those that the operator has changed", async () => {
  const readOwn = async () => {
    const { rows } = await asOwner(server.url, "select rolconfig from pg_roles where rolname = 'serpmill_app'");
    return rows[0]?.rolconfig.toSorted();
  };
  const given = [
    "default_transaction_isolation=read committed",
    "idle_in_transaction_session_timeout=10000",
    "jit=off",
    "lock_timeout=2000",
    "statement_timeout=5000",
  ];
  expect(await readOwn()).toEqual(given);
  await asOwner(
    server.url,
    "alter role serpmill_app set lock_timeout = 500; alter role serpmill_app reset statement_timeout",
  );
  await createProcessLogin(ownerUrl, processUrl);
  expect(await readOwn()).toEqual(given.with(3, "lock_timeout=500"));
});

test("the same login serves another database of the server", async () => {
  await asOwner(server.url, "create database two owner owner");
  const other = urlsOf("two");
  await migrate(other.ownerUrl);
  expect(await createProcessLogin(other.ownerUrl, other.processUrl)).toBeUndefined();
  expect(await warningsOf(other.processUrl)).toEqual([]);
});

test.each([
  ["set role owner", /permission denied to set role/],
  ["set role postgres", /permission denied to set role/],
  ["set session authorization postgres", /permission denied to set session authorization/],
  ["update organizations set balance_mils = 1", /permission denied/],
  ["insert into ledger_entries select * from ledger_entries", /permission denied/],
  ["create function evil() returns int language sql return 1", /permission denied/],
  ["create schema evil", /permission denied/],
  ["create function public.now() returns timestamptz language sql return null", /permission denied/],
  ["alter table ledger_entries disable trigger all", /must be owner/],
  ["drop table organizations", /must be owner/],
  ["copy plans to program 'true'", /permission denied to COPY to or from an external program/],
  ["create role evil", /permission denied/],
  ["grant serpmill to owner", /permission denied/],
])("a process that was taken over may not, after `reset role`: %s", async (statement, refusal) => {
  const client = new pg.Client({ connectionString: processUrl });
  await client.connect();
  try {
    await client.query("set role serpmill; reset role");
    await expect(client.query(statement)).rejects.toThrow(refusal);
  } finally {
    await client.end();
  }
});

test("the role serpmill itself cannot log in", async () => {
  const url = new URL(processUrl);
  url.username = "serpmill";
  await expect(asOwner(url.href, "select")).rejects.toThrow();
  const { rows } = await asOwner(server.url, "select rolcanlogin from pg_roles where rolname = 'serpmill'");
  expect(rows).toEqual([{ rolcanlogin: false }]);
});

/** What is logged by two pools of one process that log in like this and use several connections. */
async function warningsOf(url: string): Promise<string[]> {
  const lines: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void lines.push(line) });
  const shutdown = new Shutdown();
  for (const name of ["one", "two"]) {
    const database = openDatabase({ url, name, sizeMax: 2, log, shutdown });
    await Promise.all(Array.from({ length: 2 }, () => database.query("select pg_sleep(0.05) from plans")));
  }
  await shutdown.run(log);
  return lines.map((line) => String(JSON.parse(line).msg));
}

test("an owner who is no superuser may be the processes' login, with one warning that names the setting", async () => {
  expect(await warningsOf(ownerUrl)).toEqual([expect.stringContaining("MIGRATION_DATABASE_URL")]);
});

test("a superuser may be the processes' login, with one warning; their own login is logged by none", async () => {
  const superuser = new URL(server.url);
  superuser.pathname = "one";
  expect(await warningsOf(superuser.href)).toHaveLength(1);
  expect(await warningsOf(processUrl)).toEqual([]);
});
