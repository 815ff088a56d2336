import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, expect, inject, test } from "vitest";
import { startRedis } from "../../local/redis.ts";
import { runAdminHere } from "../harness/clients/admin.ts";
import { RunningProcess } from "../harness/processes/process.ts";
import { Service } from "../harness/processes/service.ts";
import { sources } from "../harness/assertions/sources.ts";
import { createAuthority, startBehindTls } from "../harness/servers/behind-tls.ts";
import { debianPostgres } from "../harness/servers/debian-postgres.ts";
import { freshDatabaseIn } from "../harness/servers/fresh-database.ts";
import { codesIn, page, tableRows } from "./markdown.ts";

/**
 * What the page on managed services says, tried with servers as such services are: TLS with a private certificate authority, and
 * a Redis with one password and no users.
 */

const managed = page("docs/operating/managed-services.md");
const password = "made-up";
const programs = debianPostgres();
const withoutPrograms = programs === undefined ? ": skipped without Debian's package postgresql" : "";

// Loaded before a process: its log then names each pool of connections to Postgres that it opens, with its size.
const reporting = `
  import pg from ${JSON.stringify(import.meta.resolve("pg"))};
  const { Pool } = pg;
  pg.Pool = class extends Pool {
    constructor(config) {
      super(config);
      process.stdout.write(JSON.stringify({ msg: "pool", name: config.application_name, size: config.max }) + "\\n");
    }
  };`;

const folder = await mkdtemp(join(tmpdir(), "serpmill-authority-"));
const authority = await createAuthority(folder);
const certificates = join(folder, "ca.crt");
const redis = await startRedis({ extraArgs: ["--requirepass", password] });
const service = await Service.start({
  apis: 0,
  workers: 0,
  servers: {
    database: await freshDatabaseIn(inject("postgresUrl")),
    redis: { ...redis, url: redis.url.replace("//", `//:${password}@`) },
  },
});
const databaseUrl = new URL(service.processDatabaseUrl);
const postgres = { host: databaseUrl.hostname, port: Number(databaseUrl.port) };
// They take nothing but TLS.
const postgresTls = await startBehindTls(authority, postgres, true);
const redisTls = await startBehindTls(authority, { host: "127.0.0.1", port: redis.port }, false);
/** What the processes need to reach the servers, but for the certificate of the authority. */
const addresses = {
  DATABASE_URL: Object.assign(databaseUrl, { host: `localhost:${postgresTls.port}`, search: "sslmode=verify-full" })
    .href,
  REDIS_URL: `rediss://:${password}@localhost:${redisTls.port}`,
};
const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(reporting)}`;
const trusting = { ...addresses, NODE_EXTRA_CA_CERTS: certificates, NODE_OPTIONS, KEPT_ANSWERS_DAYS: "1" };
await service.startWorker(trusting);
await service.startApi(trusting);
afterAll(async () => {
  await service.stop();
  await Promise.all([postgresTls.stop(), redisTls.stop()]);
  await rm(folder, { recursive: true });
});

test("over TLS with a private authority, and a Redis that has only a password, a search is answered and charged", async () => {
  const { token, organizationId } = await service.organization();
  await service.until(async () => (await service.search(token, { keyword: "tea" }, { key: "tea" })).status === 200);
  await service.rest();
  expect((await service.ledgerOf(organizationId)).map(({ kind }) => kind)).toEqual(["grant", "charge"]);
});

test("sslrootcert in the address is trusted like NODE_EXTRA_CA_CERTS, and without both Postgres is not trusted", async () => {
  const listPlans = (DATABASE_URL: string) =>
    runAdminHere(["plan", "list"], {
      DATABASE_URL,
      REDIS_URL: service.redisServer.url,
      SERP_PROVIDERS: "sandbox",
    });
  expect(await listPlans(`${addresses.DATABASE_URL}&sslrootcert=${certificates}`)).toMatchObject({ exitCode: 0 });
  const { stderr, exitCode } = await listPlans(addresses.DATABASE_URL);
  expect(stderr).toContain(
    `Postgres at localhost:${postgresTls.port} is unreachable: unable to verify the first certificate`,
  );
  expect(exitCode).toBe(3);
});

test.skipIf(programs === undefined)(
  `psql trusts the authority by the variable that the page on backups names${withoutPrograms}`,
  async () => {
    const [, name = ""] = /`(\w+)=\/etc\/serpmill\/ca\.pem`/.exec(page("docs/operating/backup.md").text) ?? [];
    const psql = (environment: NodeJS.ProcessEnv) =>
      promisify(execFile)(join(programs ?? "", "bin", "psql"), [addresses.DATABASE_URL, "--command", "select"], {
        env: { HOME: folder, ...environment },
      });
    await expect(psql({ NODE_EXTRA_CA_CERTS: certificates })).rejects.toThrow(
      /root certificate file .* does not exist/,
    );
    await expect(psql({ [name]: certificates })).resolves.toMatchObject({ stderr: "" });
  },
);

test("while the certificate of Postgres is not trusted, callers may retry and logs say why; a search that runs is charged once it is", async () => {
  const { token, organizationId } = await service.organization();
  const [api, worker] = [service.apis[0], service.workers[0]];
  const running = service.search(token, { keyword: "late sandbox:slow=3000" });
  await service.untilRunning(1);
  postgresTls.show(authority.otherHost);
  const refused = await service.usage((await service.organization()).token);
  expect(refused).toMatchObject({ status: 503, body: { error: { details: { reason: "postgres_unreachable" } } } });
  expect(await fetch(`${api?.opsUrl}/readyz`)).toMatchObject({ status: 503 });
  expect(JSON.stringify(await api?.line("this API cannot use Postgres"))).toMatch(/altnames/);
  await worker?.line("a settlement was not accepted at once");
  postgresTls.show(authority.context);
  expect(await running).toMatchObject({ status: 200, body: { creditsCharged: 5 } });
  expect(await service.chargesOf({ organizationId })).toEqual([{ kind: "charge", mils: -5 }]);
});

test("a Redis whose certificate no authority vouches for is not used, and the log says why", async () => {
  const environment = { ...addresses, SERP_PROVIDERS: "sandbox", WORKER_OPS_PORT: "0" };
  const worker = new RunningProcess("worker/main.ts", environment);
  const warning = await worker.line("error on the Redis connection worker");
  await worker.destroy();
  expect(JSON.stringify(warning["err"])).toMatch(/certificate/);
});

test("each process has the connections to Redis that the page names, the dashboard's included", async () => {
  const { token } = await service.organization();
  await service.until(async () => (await service.search(token, { keyword: "milk" })).status === 200);
  await Promise.all(service.apis.map(({ opsUrl }) => fetch(`${opsUrl}/queues`)));
  const lines = String(await service.redis.call("CLIENT", "LIST")).split("\n");
  const names = lines.map((line) => / name=serpmill-(\S+)/.exec(line)?.[1]).filter((name) => name !== undefined);
  const codes = tableRows(managed, "connection to Redis").flatMap((row) => codesIn(row["connection to Redis"]));
  const listed = codes.filter((code) => !code.startsWith("/"));
  expect(names.toSorted((a, b) => a.localeCompare(b))).toEqual(listed.toSorted((a, b) => a.localeCompare(b)));
});

test("each process opens the pools of connections to Postgres that the page names, of that size", () => {
  const opened = [...service.apis, ...service.workers].flatMap(({ lines }) =>
    lines.flatMap(({ msg, name, size }) => (msg === "pool" ? [`${String(name)} ${String(size)}`] : [])),
  );
  const listed = tableRows(managed, "pool in Postgres").map(
    (row) => `${codesIn(row["pool in Postgres"])[0]} ${row.connections}`,
  );
  expect(opened.toSorted((a, b) => a.localeCompare(b))).toEqual(listed.toSorted((a, b) => a.localeCompare(b)));
});

test("the connections during a roll-out follow from those of a process", () => {
  const pools = tableRows(managed, "pool in Postgres");
  const ofPostgres = (process: string, more: number) =>
    pools.filter((row) => row.process === process).reduce((sum, row) => sum + Number(row.connections) + more, 0);
  const ofRedis = (process: string) =>
    tableRows(managed, "connection to Redis")
      .filter((row) => row.process === process)
      .flatMap((row) => codesIn(row["connection to Redis"]))
      .filter((name) => !name.startsWith("/")).length;
  const rows = tableRows(managed, "APIs");
  expect(rows.length).toBeGreaterThan(0);
  for (const row of rows) {
    const [apis, workers] = [Number(row.APIs), Number(row.workers)];
    const of = (api: number, worker: number, more = 0) =>
      api * ofPostgres("API", more) + worker * ofPostgres("worker", more);
    const during = (sum: (api: number, worker: number) => number) =>
      Math.max(sum(2 * apis, workers), sum(apis, 2 * workers));
    expect(row).toEqual({
      APIs: String(apis),
      workers: String(workers),
      Postgres: String(of(apis, workers)),
      "one at a time": String(of(apis + 1, workers)),
      "deploy/upgrade.sh": String(during((api, worker) => of(api, worker))),
      "every pool one more": String(during((api, worker) => of(api, worker, 1))),
      Redis: String(during((api, worker) => api * ofRedis("API") + worker * ofRedis("worker"))),
    });
  }
});

test("no process keeps anything in a session of Postgres that the next transaction could miss", () => {
  const inSessions = /\b(listen|notify) \w+|pg_(try_)?advisory_lock\(|with hold\b|temp(orary)? table/i;
  const files = sources("{api,worker,commands,shared}/**/*.{ts,sql}").filter(({ text }) => inSessions.test(text));
  expect(files.map(({ path }) => path)).toEqual(["shared/database/migrate.ts"]);
});
