import { fileURLToPath } from "node:url";
import pg from "pg";
import Postgrator from "postgrator";
import { readMigrationConfig } from "../config.ts";
import { createProcessLogin } from "./process-login.ts";

// The same number in every process, so that concurrent migrations run one after the other.
const migrationLock = 7_306_210_954;

/**
 * Applies all pending migrations in one transaction: a failed migration leaves the database as it was. Safe to run twice,
 * and concurrently.
 * @returns the names of the applied migrations, oldest first.
 * @throws {Error} if an applied migration was edited later, or if the database refuses one.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: "serpmill-migrate" });
  await client.connect();
  try {
    await client.query("begin");
    await client.query("select pg_advisory_xact_lock($1)", [migrationLock]);
    const postgrator = new Postgrator({
      driver: "pg",
      migrationPattern: fileURLToPath(new URL("migrations/*.sql", import.meta.url)),
      schemaTable: "migrations",
      execQuery: (sql) => client.query(sql),
    });
    const applied = await postgrator.migrate();
    await client.query("commit");
    return applied.map((migration) => migration.filename.replace(/^.*\//, ""));
  } finally {
    await client.end();
  }
}

if (import.meta.main) {
  try {
    const { ownerUrl, processUrl } = readMigrationConfig();
    const applied = await migrate(ownerUrl);
    process.stdout.write(applied.length ? `applied ${applied.join(", ")}\n` : "the database is up to date\n");
    const created = await createProcessLogin(ownerUrl, processUrl);
    if (created) process.stdout.write(`created the role ${created}, as which the processes log in\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message || error.name : String(error)}\n`);
    process.exitCode = 1;
  }
}
