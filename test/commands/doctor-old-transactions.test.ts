import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { startPostgres } from "../../local/postgres.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { freshRedis } from "../harness/servers/servers.ts";

/** `admin doctor` on transactions that keep Postgres from removing dead rows. In a Postgres without the transactions of other tests. */

const postgres = await startPostgres();
const [database, redis] = await Promise.all([freshDatabaseIn(postgres.url), freshRedis()]);
const service = await Service.start({ apis: 0, servers: { database, redis } });
afterAll(async () => {
  await service.stop();
  await postgres.stop();
});

const report = z.object({ findings: z.array(z.object({ part: z.string(), state: z.string(), found: z.string() })) });

/** The exit code, and what is not ok about Postgres. */
async function examine() {
  const { exitCode, stdout } = await new Operator(service).try("doctor");
  const { findings } = report.parse(JSON.parse(stdout));
  return { exitCode, wrong: findings.filter(({ part, state }) => part === "postgres" && state !== "ok") };
}

const runTransactions = () =>
  asOwner(service.databaseUrl, (client) =>
    client.query("do $$ begin for n in 1..10001 loop perform pg_current_xact_id(); commit; end loop; end $$"),
  );

const warningOf = (name: string) => ({
  exitCode: 0,
  wrong: [
    {
      part: "postgres",
      state: "warning",
      found: expect.stringMatching(
        new RegExp(`^the transaction of process \\d+ \\(${name}\\) keeps the dead rows of 1\\d{4,} newer ones$`),
      ),
    },
  ],
});
const nothing = { exitCode: 0, wrong: [] };

test("a dump that keeps Postgres from cleaning up is a warning, which names it, until it ends", async () => {
  await asOwner(service.databaseUrl, async (dumping) => {
    await dumping.query("set application_name = 'pg_dump'");
    await dumping.query("begin isolation level repeatable read");
    await dumping.query("select from organizations");
    expect(await examine()).toEqual(nothing);
    await runTransactions();
    expect(await examine()).toEqual(warningOf("pg_dump"));
    await dumping.query("commit");
  });
  expect(await examine()).toEqual(nothing);
});

test("the transaction of another database that makes every snapshot old is named, and not one that is as old as it", async () => {
  await asOwner(postgres.url, async (writing) => {
    await writing.query("set application_name = 'nightly report'");
    await writing.query("begin");
    await writing.query("select pg_current_xact_id()");
    await runTransactions();
    expect(await examine()).toEqual(warningOf("nightly report"));
    await writing.query("commit");
  });
  expect(await examine()).toEqual(nothing);
});
