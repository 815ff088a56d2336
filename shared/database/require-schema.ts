import { readdirSync } from "node:fs";
import type { Database } from "./pool.ts";

/** The numbers of the migrations of this release. */
export const migrationNumbers: readonly number[] = readdirSync(new URL("migrations", import.meta.url)).map((name) =>
  Number.parseInt(name, 10),
);
const newestMigration = Math.max(...migrationNumbers);

/**
 * Whether this process can use Postgres: it answers, and has the migrations of this release, or of a newer one. On any other
 * database a worker would take searches and could charge none.
 * @throws if not.
 */
export async function requireSchema(database: Pick<Database, "query">): Promise<void> {
  const { rowCount } = await database.query("select from migrations where version >= $1 limit 1", [newestMigration]);
  if (rowCount === 0) throw new Error("the database lacks migrations of this release: run npm run migrate");
}
