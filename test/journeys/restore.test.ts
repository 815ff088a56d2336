import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalServer } from "../../local/local-server.ts";
import { processUrlOf, startPostgres } from "../../local/postgres.ts";
import { startRedis } from "../../local/redis.ts";
import { GuardedFolder } from "../harness/processes/guarded-folder.ts";
import { run } from "../harness/processes/run.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { debianPostgres } from "../harness/servers/debian-postgres.ts";

/**
 * A backup of Postgres, restored on an empty server with an empty Redis, as docs/operating/backup.md describes it. The
 * server that is lost and the new one are of the version whose pg_dump is installed.
 */

const programs = debianPostgres();
const withoutPrograms = programs === undefined ? ": skipped without Debian's package postgresql" : "";
const keyed = { keyword: "tea", key: "order-1" };

let folder: GuardedFolder;
let dump: string;
let organization: Organization;
let keyedAnswer: string;
const servers: LocalServer[] = [];

/** An empty server, prepared as before the first start. @returns the address of the database for its owner. */
async function startServer(): Promise<string> {
  const server = await startPostgres({ programs: programs ?? "" });
  servers.push(server);
  await asOwner(server.url, async (client) => {
    await client.query("create role owner login createrole password 'keeps'");
    await client.query("create database ledger owner owner");
  });
  return Object.assign(new URL(server.url), { username: "owner", password: "keeps", pathname: "ledger" }).href;
}

const migrate = (ownerUrl: string) =>
  run("shared/database/migrate.ts", [], { DATABASE_URL: processUrlOf(ownerUrl), MIGRATION_DATABASE_URL: ownerUrl });

const pgProgram = (name: string, ...args: string[]) => promisify(execFile)(join(programs ?? "", "bin", name), args);

const startService = async (ownerUrl: string) =>
  Service.start({ servers: { database: { url: ownerUrl, drop: async () => undefined }, redis: await startRedis() } });

const search = (service: Service, { keyword, key }: { keyword: string; key?: string }) =>
  service.search(organization.token, { keyword }, key === undefined ? {} : { key });

describe.skipIf(programs === undefined)(`a dump on an empty server${withoutPrograms}`, () => {
  beforeAll(async () => {
    folder = await GuardedFolder.create("serpmill-restore-");
    dump = join(folder.path, "serpmill.dump");
    const ownerUrl = await startServer();
    await migrate(ownerUrl);
    const service = await startService(ownerUrl);
    organization = await service.organization({ creditMils: 100 });
    keyedAnswer = (await search(service, keyed)).text;
    await search(service, { keyword: "milk" });
    await service.rest();
    await asOwner(ownerUrl, (client) =>
      client.query(
        `insert into auto_topups (organization_id, customer_id, payment_method_id, card_brand, card_last4, card_expires,
           is_on, threshold_mils, amount_mils, ceiling_mils)
         values ($1, 'cus_1', 'pm_1', 'visa', '4242', '4/2030', true, 1, 1000, 1000)`,
        [organization.organizationId],
      ),
    );
    await pgProgram("pg_dump", "--format=custom", `--file=${dump}`, ownerUrl);
    // After the backup: lost with the server.
    await search(service, { keyword: "honey" });
    await service.rest();
    await service.stop();
  });
  afterAll(async () => {
    await Promise.all(servers.map((server) => server.stop()));
    folder.remove();
  });

  test("serves again after a restore as documented: balances, ledger, tokens and answers under keys of the dump, and no automatic top-ups", async () => {
    const ownerUrl = await startServer();
    await asOwner(ownerUrl, (client) => client.query("create role serpmill nologin"));
    await pgProgram("pg_restore", "--no-owner", "--exit-on-error", `--dbname=${ownerUrl}`, dump);
    const [switchOff = ""] =
      /(?<=`)update auto_topups [^`]+/.exec(await readFile("docs/operating/backup.md", "utf8")) ?? [];
    const { rows } = await asOwner(ownerUrl, (client) => client.query(`${switchOff} returning is_on`));
    expect(rows).toEqual([{ is_on: false }]);
    expect(await serveAgain(ownerUrl)).toEqual(served);
  });

  test("serves again after a restore without the role, whose errors were ignored, once the migration ran", async () => {
    const ownerUrl = await startServer();
    const restored = pgProgram("pg_restore", "--no-owner", `--dbname=${ownerUrl}`, dump);
    await expect(restored).rejects.toThrow(/role "serpmill" does not exist/);
    expect(await serveAgain(ownerUrl)).toEqual(served);
  });

  test("has the privileges of a new database, however little of them was restored", async () => {
    const [fresh, restored] = [await startServer(), await startServer()];
    await migrate(fresh);
    await pgProgram("pg_restore", "--no-owner", "--no-privileges", `--dbname=${restored}`, dump).catch(() => undefined);
    await migrate(restored);
    expect(await privilegesOf(restored)).toEqual(await privilegesOf(fresh));
  });
});

const served = {
  migration: {
    exitCode: 0,
    stdout: "the database is up to date\ncreated the role serpmill_app, as which the processes log in\n",
    stderr: "",
  },
  balanceMils: 90,
  isReplayed: true,
  searched: 200,
  ledger: [100, -5, -5, -5],
  violations: [],
  errors: [],
};

/** Runs the migration and starts the service with an empty Redis. @returns what an operator and a caller see then. */
async function serveAgain(ownerUrl: string): Promise<Record<keyof typeof served, unknown>> {
  const migration = await migrate(ownerUrl);
  const service = await startService(ownerUrl);
  try {
    const balanceMils = (await service.usage(organization.token)).body.creditBalanceMils;
    const isReplayed = (await search(service, keyed)).text === keyedAnswer;
    const searched = (await search(service, { keyword: "bread" })).status;
    await service.rest();
    const ledger = (await service.ledgerOf(organization.organizationId)).map(({ mils }) => mils);
    const { violations } = await service.verify();
    const errors = [...service.apis, ...service.workers].flatMap((one) => one.errors);
    return { migration, balanceMils, isReplayed, searched, ledger, violations, errors };
  } finally {
    await service.stop();
  }
}

/**
 * Everything that the role of the processes, and everyone, may do in the schema. The days of the
 * search log are left out: maintenance makes them, and processes reach them through the whole table alone.
 */
async function privilegesOf(ownerUrl: string): Promise<unknown[]> {
  const { rows } = await asOwner(ownerUrl, (client) =>
    client.query(
      `select 'table' as of, relname as name, coalesce(relacl::text, '') as granted, relrowsecurity::text as detail
         from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v') and relname !~ '^search_log_\\d{8}$'
       union all
       select 'column', attrelid::regclass || '.' || attname, attacl::text, ''
         from pg_attribute where attacl is not null and attrelid >= 16384
       union all
       select 'function', oid::regprocedure::text, coalesce(proacl::text, ''), coalesce(proconfig::text, '') || prosecdef
         from pg_proc where pronamespace = 'public'::regnamespace
       union all
       select 'schema', nspname, nspacl::text, '' from pg_namespace where nspname = 'public'
       order by 1, 2`,
    ),
  );
  return rows;
}
