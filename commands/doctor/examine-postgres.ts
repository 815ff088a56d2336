import { readdirSync } from "node:fs";
import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { canBecomeMore } from "../../shared/database/process-login.ts";
import { sqlStateOf } from "../../shared/database/transient-errors.ts";
import { failure, type Finding, ok, warning } from "./finding.ts";

const oldestVersion = 15;
const undefinedTable = "42P01";
const migrations = new URL("../../shared/database/migrations/", import.meta.url);

const stateRow = z.object({ version: z.coerce.number(), at_ms: z.number(), is_replica: z.boolean() });

/** @returns findings about Postgres, and by how much its clock is ahead of this machine's, if it answered. */
export async function examinePostgres(database: Database): Promise<{ findings: Finding[]; aheadMs?: number }> {
  try {
    await database.query("select 1"); // So that connecting does not count as a difference of the clocks.
    const askedAtMs = Date.now();
    const { rows } = await database.query(
      `select current_setting('server_version_num') as version, pg_is_in_recovery() as is_replica,
         extract(epoch from clock_timestamp())::float8 * 1000 as at_ms`,
    );
    const state = stateRow.parse(rows[0]);
    const aheadMs = state.at_ms - (askedAtMs + Date.now()) / 2;
    const findings = [
      ...examineVersion(state),
      await examineMigrations(database),
      await examineRole(database),
      await examineLogin(database),
    ];
    return { findings, aheadMs };
  } catch (error) {
    return { findings: [describeRefusal(error)] };
  }
}

function examineVersion({ version, is_replica: isReplica }: z.infer<typeof stateRow>): Finding[] {
  const major = Math.floor(version / 10_000);
  const name = `Postgres ${major}.${version % 10_000}`;
  if (isReplica) return [failure("postgres", `${name}, a read-only replica`, "Point DATABASE_URL to the primary.")];
  if (major >= oldestVersion) return [ok("postgres", name)];
  return [failure("postgres", name, `Use Postgres ${oldestVersion} or newer.`)];
}

async function examineMigrations(database: Database): Promise<Finding> {
  const numbers = readdirSync(migrations).map((name) => Number.parseInt(name, 10));
  const newest = Math.max(...numbers);
  const applied = await readNewestMigration(database);
  if (applied === newest) return ok("postgres", `migrations up to date (${newest})`);
  const found =
    applied < newest
      ? `pending migrations: ${numbers.filter((number) => number > applied).length}`
      : `migration ${applied} is of a newer version`;
  if (applied < newest) return failure("postgres", found, "Run npm run migrate.");
  return warning("postgres", found, "Upgrade the processes, or see the changelog about rolling back.");
}

async function readNewestMigration(database: Database): Promise<number> {
  try {
    const { rows } = await database.query("select coalesce(max(version), 0)::int as newest from migrations");
    return z.object({ newest: z.number() }).parse(rows[0]).newest;
  } catch (error) {
    if (sqlStateOf(error) === undefinedTable) return 0;
    throw error;
  }
}

const refusedRow = z.object({ refused: z.int() });

async function examineRole(database: Database): Promise<Finding> {
  const { rows } = await database.query(
    `select count(*)::int as refused from pg_proc
     where pronamespace = 'public'::regnamespace and not has_function_privilege(oid, 'execute')
       and proname in ('decide_searches', 'charge_alone', 'limit_organization', 'limit_token', 'reverse_charges', 'grant_credit', 'correct_credit', 'topup')`,
  );
  if (refusedRow.parse(rows[0]).refused === 0) return ok("postgres", "the role serpmill has its privileges");
  return failure("postgres", "the role serpmill lacks privileges", "Run npm run migrate, which repairs them.");
}

async function examineLogin(database: Database): Promise<Finding> {
  const client = await database.connect();
  try {
    if (!(await canBecomeMore(client))) return ok("postgres", "the login can do no more than the processes need");
  } finally {
    client.release();
  }
  return warning(
    "postgres",
    "the login can do more than the processes need",
    "Give the processes their own login: docs/operating/datastores.md#users",
  );
}

function describeRefusal(error: unknown): Finding {
  const message = error instanceof Error ? error.message : String(error);
  if (/role "serpmill" does not exist|permission denied/.test(message)) {
    return failure("postgres", message, "Run npm run migrate, which creates or repairs the role and its privileges.");
  }
  return failure(
    "postgres",
    message || "unreachable",
    "Check DATABASE_URL, and that the server runs and is reachable.",
  );
}
