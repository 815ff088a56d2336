import { randomBytes } from "node:crypto";
import type { Client } from "pg";
import { migrate } from "../../../shared/database/migrate.ts";
import { createProcessLogin } from "../../../shared/database/process-login.ts";
import { processUrlOf } from "../../../local/postgres.ts";
import { asOwner } from "./as-owner.ts";

// Any number, the same in all workers: the first makes the template, the others wait for it.
const templateLock = 3_141_592;
const templateName = "migrated_template";
const unfinishedName = "unfinished_template";

export interface FreshDatabase {
  /** As its owner. The processes log in at `processUrlOf(url)`. */
  url: string;
  drop: () => Promise<void>;
}

/** A new database with all migrations applied: a copy of a template that is migrated once per server. */
export async function freshDatabaseIn(postgresUrl: string): Promise<FreshDatabase> {
  const name = `test_${randomBytes(8).toString("hex")}`;
  await asOwner(postgresUrl, async (client) => {
    await ensureTemplate(client, postgresUrl);
    await client.query(`create database ${name} template ${templateName}`);
  });
  const drop = () =>
    asOwner(postgresUrl, async (client) => void (await client.query(`drop database ${name} with (force)`)));
  return { url: urlOf(postgresUrl, name), drop };
}

// The rename marks a finished template; an unfinished one was left behind by a killed worker.
async function ensureTemplate(client: Client, postgresUrl: string): Promise<void> {
  await client.query("select pg_advisory_lock($1)", [templateLock]);
  try {
    const { rowCount } = await client.query("select from pg_database where datname = $1", [templateName]);
    if (rowCount === 1) return;
    await client.query(`drop database if exists ${unfinishedName} with (force)`);
    await client.query(`create database ${unfinishedName}`);
    await migrate(urlOf(postgresUrl, unfinishedName));
    await createProcessLogin(postgresUrl, processUrlOf(postgresUrl));
    await client.query(`alter database ${unfinishedName} rename to ${templateName}`);
  } finally {
    await client.query("select pg_advisory_unlock($1)", [templateLock]);
  }
}

function urlOf(postgresUrl: string, database: string): string {
  const url = new URL(postgresUrl);
  url.pathname = `/${database}`;
  return url.href;
}
