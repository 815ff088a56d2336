import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { run } from "../../harness/processes/run.ts";
import { usualService } from "../../harness/processes/usual-stack.ts";

/** The migration, commands and `npm start` take their secrets from files, as API and worker do with all settings. */

const [service, folder] = await Promise.all([usualService(), mkdtemp(join(tmpdir(), "serpmill-secrets-"))]);
/** The addresses of both data stores, only in files. */
const secrets = {
  DATABASE_URL: "",
  DATABASE_URL_FILE: join(folder, "postgres"),
  REDIS_URL: "",
  REDIS_URL_FILE: join(folder, "redis"),
};
await writeFile(join(folder, "postgres"), `${service.processDatabaseUrl}\n`);
await writeFile(join(folder, "redis"), `${service.redisServer.url}\n`);
afterAll(() => rm(folder, { recursive: true }));

test("the migration and the operator's commands have their addresses from files", async () => {
  const owner = { MIGRATION_DATABASE_URL_FILE: join(folder, "owner") };
  await writeFile(owner.MIGRATION_DATABASE_URL_FILE, service.databaseUrl);
  expect(await run("shared/database/migrate.ts", [], { ...secrets, ...owner })).toEqual({
    exitCode: 0,
    stdout: "the database is up to date\n",
    stderr: "",
  });
  expect(await run("commands/main.ts", ["ledger", "verify"], { ...secrets, SERP_PROVIDERS: "sandbox" })).toMatchObject({
    exitCode: 0,
    stderr: "",
  });
});

test("npm start does not begin with a file that cannot be read, and names the setting", async () => {
  const { exitCode, stdout, stderr } = await run("local/start.ts", [], { ...secrets, DATABASE_URL_FILE: folder });
  expect(exitCode).toBe(1);
  expect(stdout + stderr).toContain("DATABASE_URL_FILE: expected the path of a file, not of a folder or device");
});
