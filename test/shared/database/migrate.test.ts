import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Client } from "pg";
import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { migrate } from "../../../shared/database/migrate.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { readSource } from "../../harness/assertions/sources.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import type { FreshDatabase } from "../../harness/servers/fresh-database.ts";
import { freshDatabase } from "../../harness/servers/servers.ts";

/** Migrations of a database that serves searches at the same time. */

const patience = { lockMsMax: 50, attemptsMax: 3, pauseMs: 1 };
let database: FreshDatabase;

const folder = await mkdtemp(join(tmpdir(), "serpmill-migrations-"));
afterAll(() => rm(folder, { recursive: true }));
beforeEach(async () => {
  database = await freshDatabase();
  onTestFinished(() => database.drop());
});

/** The migrations of the checkout and, behind them, these. @returns their folder, and their names. */
async function withMigrations(...texts: string[]): Promise<{ path: string; names: string[] }> {
  const path = await mkdtemp(join(folder, "set-"));
  await cp("shared/database/migrations", path, { recursive: true });
  const names = texts.map((_, at) => `${101 + at}.do.added.sql`);
  await Promise.all(texts.map((text, at) => writeFile(join(path, names[at] ?? ""), text)));
  return { path, names };
}

const inOpenTransaction = (use: (client: Client) => Promise<void>) =>
  asOwner(database.url, async (client) => {
    await client.query("begin");
    await use(client);
    await client.query("rollback");
  });

const columnsAdded = async () =>
  asOwner(database.url, async (client) => {
    const { rowCount } = await client.query("select from information_schema.columns where column_name = 'colour'");
    return rowCount;
  });

const read = (sql: string) => asOwner(database.url, async (client) => (await client.query(sql)).rows);
const newestApplied = () => read("select max(version)::integer as version from migrations");
const callableByAll = () =>
  read(`select proname from pg_proc, aclexplode(coalesce(proacl, acldefault('f', proowner))) a
        where pronamespace = 'public'::regnamespace and a.grantee = 0 order by proname`);

test("a new function can be called by its owner alone, and those of an extension stay as they are", async () => {
  await read("create extension lo");
  const { path } = await withMigrations(
    "-- A function.\ncreate function paint() returns int language sql as 'select 1';\n",
  );
  await migrate(database.url, { folder: path });
  expect(await callableByAll()).toEqual([{ proname: "lo_manage" }, { proname: "lo_oid" }]);
});

const addsColumn = "-- A column for the test.\nalter table ledger_entries add column colour text;\n";

test("a run without pending migrations waits for no transaction of a search, and lets all of them go on", async () => {
  const tables = "organizations, tokens, plans, ledger_entries, answers, undelivered, locations";
  await inOpenTransaction(async (search) => {
    await search.query(`lock table ${tables} in row exclusive mode`);
    expect(await migrate(database.url, { lockWait: { ...patience, attemptsMax: 1 } })).toEqual([]);
  });
  await inOpenTransaction(async (migration) => {
    await migration.query(readSource("shared/database/privileges.sql"));
    const { rows } = await migration.query(
      `select relname, mode from pg_locks join pg_class on pg_class.oid = relation
       where pid = pg_backend_pid() and relnamespace = 'public'::regnamespace
         and mode not in ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock')`,
    );
    expect(rows).toEqual([]);
  });
});

test("a migration that gets no lock leaves the queue of the table at once, says so and applies nothing", async () => {
  const { path } = await withMigrations(addsColumn);
  const said: string[] = [];
  await inOpenTransaction(async (search) => {
    await search.query("select from ledger_entries");
    const run = migrate(database.url, { folder: path, lockWait: patience, say: (line) => void said.push(line) });
    await expect(run).rejects.toThrow(/in use by another transaction for more than 50 ms, 3 times.*pg_stat_activity/);
  });
  expect(said).toHaveLength(2);
  expect(await columnsAdded()).toBe(0);
});

test("each migration keeps its locks only for itself, and one that gets none repeats none of those before it", async () => {
  const { path, names } = await withMigrations(
    addsColumn,
    "-- A function for the owner alone.\ncreate function paint() returns int language sql security definer as 'select 1';\n",
    "-- Another column.\nalter table plans add column colour text;\n",
  );
  const run = () => migrate(database.url, { folder: path, lockWait: patience });
  await inOpenTransaction(async (search) => {
    await search.query("select from plans");
    await expect(run()).rejects.toThrow("this migration was not applied, those before it were");
    // What was applied locks nothing any more, and no other role may call what it made.
    await read("alter table ledger_entries add column size text");
    expect(await newestApplied()).toEqual([{ version: 102 }]);
    expect(await callableByAll()).toEqual([]);
  });
  expect(await run()).toEqual(names.slice(2));
});

test("a function or a view that replaces another can be used as that was, before a later migration sets the privileges", async () => {
  const replaces = `-- The same again.
do $$
declare definition text := pg_get_functiondef('decide_searches'::regproc);
begin
  execute 'drop function decide_searches';
  execute definition;
end $$;
create table searches as select 1 as id;
drop view key_payments;
create view key_payments as select organization_id, key_hash, fingerprint, request_id, expires_at, slot from answers;
create function utc_today(days integer) returns date language sql as 'select utc_today() + days';
`;
  const { path } = await withMigrations(replaces, "-- Another column.\nalter table plans add column colour text;\n");
  await inOpenTransaction(async (search) => {
    await search.query("select from plans");
    await expect(migrate(database.url, { folder: path, lockWait: patience })).rejects.toThrow("3 times");
    expect(await newestApplied()).toEqual([{ version: 101 }]);
    const { rows } = await search.query(
      `select has_function_privilege('serpmill', 'decide_searches'::regproc, 'execute') as calls,
         has_table_privilege('serpmill', 'key_payments', 'select') as reads, has_table_privilege('serpmill', 'key_payments', 'delete') as deletes,
         has_table_privilege('serpmill', 'searches', 'select') as reads_new,
         has_function_privilege('serpmill', 'utc_today(integer)', 'execute') as calls_new`,
    );
    expect(rows).toEqual([{ calls: true, reads: true, deletes: false, reads_new: false, calls_new: false }]);
    expect(await callableByAll()).toEqual([]);
  });
});

test("a migration that Postgres ends to resolve a deadlock is applied at its next attempt", async () => {
  const { path, names } = await withMigrations(`${addsColumn}alter table plans add column colour text;\n`);
  const attempts: string[] = [];
  const search = asOwner(database.url, async (client) => {
    await client.query("begin");
    await client.query("set local deadlock_timeout = '1h'"); // So that Postgres ends the migration.
    await client.query("select from plans");
    const run = migrate(database.url, {
      folder: path,
      lockWait: { ...patience, lockMsMax: 10_000 },
      say: (line) => void attempts.push(line),
    });
    await eventually(async () => {
      const { rowCount } = await client.query(
        "select from pg_locks where not granted and relation = 'plans'::regclass",
      );
      return rowCount === 1;
    });
    await client.query("select from ledger_entries"); // Waits until Postgres has ended the migration.
    await client.query("rollback");
    expect(await run).toEqual(names);
  });
  await search;
  expect(attempts).toHaveLength(1);
  expect(attempts[0]).toMatch(/this migration was not applied, attempt 2 of 3 follows/);
});

test("a migration that waits for a lock is applied as soon as the transaction before it ends", async () => {
  const { path, names } = await withMigrations(addsColumn);
  const waits = Promise.withResolvers<void>();
  let run: Promise<string[]> | undefined;
  await inOpenTransaction(async (search) => {
    await search.query("select from ledger_entries");
    const lockWait = { ...patience, attemptsMax: 10_000 };
    run = migrate(database.url, { folder: path, lockWait, say: () => waits.resolve() });
    await waits.promise;
    // Between two attempts, and behind one, other searches read and write.
    await asOwner(database.url, "select from ledger_entries");
  });
  expect(await run).toEqual(names);
  expect(await columnsAdded()).toBe(1);
});

test("an older release leaves a database alone that a newer one has migrated: its tables and its privileges", async () => {
  const newer =
    "-- A table with a privilege of its own.\ncreate table newer (id int);\ngrant select on newer to serpmill;\n";
  await migrate(database.url, { folder: (await withMigrations(newer)).path });
  await asOwner(database.url, "grant select on newer to serpmill");
  expect(await migrate(database.url)).toEqual([]);
  const { rows } = await asOwner(database.url, "select has_table_privilege('serpmill', 'newer', 'select') as may_read");
  expect(rows).toEqual([{ may_read: true }]);
});

test("a database of another baseline is refused with what to do, and left as it is, also where it had more migrations", async () => {
  const { path } = await withMigrations(addsColumn);
  const run = () => migrate(database.url, { folder: path });
  const refusal = /its migration 2 is not 002\.do\.ledger\.sql\. .* nothing converts it: use an empty database\.$/;
  await read("update migrations set md5 = 'x' where version = 2");
  await expect(run()).rejects.toThrow(refusal);
  await read("insert into migrations (version, md5) values (9999, 'y')");
  await expect(run()).rejects.toThrow(refusal);
  expect(await columnsAdded()).toBe(0);
});

test("each rule of a table holds for all of its rows, also for those that are older than the rule", async () => {
  const { rows } = await asOwner(
    database.url,
    "select conrelid::regclass::text as table, conname from pg_constraint where not convalidated",
  );
  expect(rows).toEqual([]);
});

test("a connection that is lost while a migration waits ends it with an error, and the next one goes through", async () => {
  const { path, names } = await withMigrations(addsColumn);
  await asOwner(database.url, async (client) => {
    const [{ key }] = (await client.query("select 7306210954 as key, pg_advisory_lock(7306210954)")).rows;
    const problem = migrate(database.url, { folder: path }).then(() => "none", String);
    const end =
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'serpmill-migrate' and datname = current_database()";
    await eventually(async () => (await client.query(end)).rowCount === 1);
    expect(await problem).toContain("connection");
    await client.query("select pg_advisory_unlock($1)", [key]);
  });
  expect(await migrate(database.url, { folder: path })).toEqual(names);
});
