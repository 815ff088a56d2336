import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

const versionsFolder = "/usr/lib/postgresql";

/**
 * The folder of Debian's newest Postgres, which has pg_dump and pg_restore; undefined without one. The package that tests
 * usually start has only the server.
 */
export function debianPostgres(): string | undefined {
  if (!existsSync(versionsFolder)) return undefined;
  const versions = readdirSync(versionsFolder).toSorted((a, b) => Number(b) - Number(a));
  return versions
    .map((version) => join(versionsFolder, version))
    .find((folder) =>
      ["postgres", "initdb", "pg_dump", "pg_restore"].every((name) => existsSync(join(folder, "bin", name))),
    );
}
