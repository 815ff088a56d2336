import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import pg from "pg";
import Postgrator from "postgrator";
import { readMigrationConfig } from "../config.ts";
import { createProcessLogin } from "./process-login.ts";
import { explainPostgres, isDeadlock, isLockTimeout } from "./transient-errors.ts";

// The same number in every process, so that concurrent migrations run one after the other.
const migrationLock = 7_306_210_954;
const turnPollMs = 200;
// Longer than a migration that reads a large ledger takes.
const turnWaitMsMax = 3_600_000;

// While a migration waits for a table, every later search waits behind it. So it gives up soon, and tries again later: before
// Postgres looks for deadlocks, which it does after a second. Otherwise it might end a search that waits for the migration.
const lockWait = { lockMsMax: 500, attemptsMax: 20, pauseMs: 3_000 };

/** What the role of the processes may use, by name. */
const readPrivileges = `
  select 'function' as kind, proname as name, a.privilege_type as privilege
  from pg_proc, aclexplode(proacl) a where pronamespace = 'public'::regnamespace and a.grantee = to_regrole('serpmill')
  union select 'table', relname, a.privilege_type
  from pg_class, aclexplode(relacl) a where relnamespace = 'public'::regnamespace and a.grantee = to_regrole('serpmill')`;

/**
 * What gives new functions and views the privileges of those that they replace: processes of the last release use them before the
 * last transaction. A function beside one of its name replaces nothing.
 */
const findReplaced = `
  select format('grant %s on %s %s to serpmill', privilege, kind, coalesce(p.oid::regprocedure::text, c.oid::regclass::text)) as grant
  from json_to_recordset($1) as k (kind text, name text, privilege text)
  left join pg_proc p on kind = 'function' and p.proname = k.name and p.pronamespace = 'public'::regnamespace and p.proacl is null
    and not exists (select from pg_proc o where o.proname = k.name and o.pronamespace = p.pronamespace and o.proacl is not null)
  left join pg_class c on kind = 'table' and c.relname = k.name and c.relnamespace = 'public'::regnamespace and c.relacl is null
  where num_nonnulls(p.oid, c.oid) = 1`;

/** Anyone may call a new function until it is revoked, also one that runs as its owner. What extensions created stays as it is. */
const closeFunctions = `do $$
declare
  open regprocedure;
begin
  for open in
    select oid::regprocedure from pg_proc
    where pronamespace = 'public'::regnamespace
      and exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) where grantee = 0)
      and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = pg_proc.oid and deptype = 'e')
  loop
    execute format('revoke execute on routine %s from public', open);
  end loop;
end $$`;

const privileges = readFileSync(new URL("privileges.sql", import.meta.url), "utf8");
const ownFolder = fileURLToPath(new URL("migrations", import.meta.url));

type Migration = Postgrator.Migration;

interface MigrateOptions {
  folder?: string;
  lockWait?: typeof lockWait;
  /** What to do about a database of another schema, said in the error. */
  remedy?: string;
  /** The setting that has the URL, said if Postgres is unreachable: `DATABASE_URL` by default. */
  setting?: string | undefined;
  /** Gets a line when the migration waits. */
  say?: (line: string) => void;
}

/**
 * Applies all pending migrations, each in a transaction of its own: no lock of one is held while another reads a large table,
 * and a failure keeps those before it. The privileges of the processes are set in the last transaction, so that no database is
 * up to date without them; until then what a migration creates belongs to its owner alone. Safe to run twice, and concurrently.
 * Does nothing to a database that a newer release has migrated, so that an older one can be started again.
 * @returns the names of the applied migrations, oldest first.
 * @throws {Error} if the database was migrated by other migrations, if it refuses one, or if one gets no lock in time.
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "serpmill-migrate" });
  client.on("error", () => undefined); // What waits for the client gets the error of a lost connection too.
  await client.connect().catch((error: unknown) => {
    throw explainPostgres(error, databaseUrl, options.setting) ?? error;
  });
  try {
    await awaitTurn(client);
    const postgrator = new Postgrator({
      driver: "pg",
      migrationPattern: `${options.folder ?? ownFolder}/*.sql`,
      schemaTable: "migrations",
      execQuery: (sql) => client.query(sql),
    });
    const migrations = (await postgrator.getMigrations()).toSorted((a, b) => a.version - b.version);
    const databaseVersion = await postgrator.getDatabaseVersion();
    if (databaseVersion > 0) await refuseOtherSchema(client, migrations, options.remedy);
    const newest = migrations.at(-1)?.version ?? 0;
    if (databaseVersion > newest) {
      options.say?.(
        `The database is of a newer release (migration ${databaseVersion}, this release ends with ${newest}) and is left as it is: start that release again, or use another database.`,
      );
      return [];
    }
    const applied: Migration[] = [];
    for (const { version } of migrations) {
      const isLast = version === newest;
      if (version <= databaseVersion && !isLast) continue;
      const apply = () => postgrator.migrate(String(version));
      applied.push(...(await inTransaction(client, { apply, isLast }, options)));
    }
    return applied.map((migration) => migration.filename.replace(/^.*\//, ""));
  } finally {
    await client.end();
  }
}

/** Until v1.0.0 the migrations are edited in place, so a database may have been made by others than these. */
async function refuseOtherSchema(client: pg.Client, migrations: Migration[], remedy = "use an empty database") {
  const { rows } = await client.query("select version::integer, md5 from migrations");
  const applied = new Map(rows.map(({ version, md5 }) => [version, md5]));
  const other = migrations.find(({ version, md5 }) => applied.has(version) && applied.get(version) !== md5);
  if (!other) return;
  throw new Error(
    `The database has another schema than this release: its migration ${other.version} is not ${other.filename.replace(/^.*\//, "")}. ` +
      `The schema changed before the first release, and nothing converts it: ${remedy}.`,
  );
}

/** Waits until no other process migrates this database. */
async function awaitTurn(client: pg.Client): Promise<void> {
  for (let waitedMs = 0; waitedMs < turnWaitMsMax; waitedMs += turnPollMs) {
    const { rows } = await client.query("select pg_try_advisory_lock($1) as is_ours", [migrationLock]);
    if (rows[0].is_ours) return;
    await sleep(turnPollMs);
  }
  throw new Error("another migration of this database has not ended for an hour");
}

async function inTransaction(
  client: pg.Client,
  { apply, isLast }: { apply: () => Promise<Migration[]>; isLast: boolean },
  { lockWait: { lockMsMax, attemptsMax, pauseMs } = lockWait, say = () => undefined }: MigrateOptions,
): Promise<Migration[]> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query("begin");
      await client.query(`set local lock_timeout = ${lockMsMax}`);
      const kept = await client.query(readPrivileges);
      const applied = await apply();
      const replaced = await client.query(findReplaced, [JSON.stringify(kept.rows)]);
      await client.query(closeFunctions);
      if (isLast) await client.query(privileges);
      else for (const { grant } of replaced.rows) await client.query(grant);
      await client.query("commit");
      return applied;
    } catch (error) {
      await client.query("rollback").catch(() => undefined); // Without a connection there is nothing to undo.
      if (!isLockTimeout(error) && !isDeadlock(error)) throw error;
      const waited = `a table was in use by another transaction for more than ${lockMsMax} ms`;
      if (attempt === attemptsMax)
        throw new Error(
          `${waited}, ${attemptsMax} times: this migration was not applied, those before it were. Find that transaction in pg_stat_activity ` +
            "(the oldest xact_start), end it, and migrate again",
          { cause: error },
        );
      say(`${waited}: this migration was not applied, attempt ${attempt + 1} of ${attemptsMax} follows`);
      await sleep(pauseMs);
    }
  }
}

if (import.meta.main) {
  try {
    const { ownerUrl, processUrl } = readMigrationConfig();
    const setting = ownerUrl === processUrl ? "DATABASE_URL" : "MIGRATION_DATABASE_URL";
    const applied = await migrate(ownerUrl, { setting, say: (line) => void process.stdout.write(`${line}\n`) });
    process.stdout.write(applied.length ? `applied ${applied.join(", ")}\n` : "the database is up to date\n");
    const created = await createProcessLogin(ownerUrl, processUrl);
    if (created) process.stdout.write(`created the role ${created}, as which the processes log in\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message || error.name : String(error)}\n`);
    process.exitCode = 1;
  }
}
