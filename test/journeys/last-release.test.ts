import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { migrate } from "../../shared/database/migrate.ts";
import { SearchStream } from "../harness/clients/search-stream.ts";
import { prepareUpgrade } from "../harness/processes/last-release.ts";
import { run } from "../harness/processes/run.ts";
import { type Answer, type Api, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import type { FreshDatabase } from "../harness/servers/fresh-database.ts";
import { freshDatabase, freshRedis } from "../harness/servers/servers.ts";
import { reply, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";
import { processUrlOf } from "../../local/postgres.ts";

/**
 * Processes of the last release and of this one, side by side, as during an upgrade and a rollback. The releases agree on
 * the schema, on what is in Redis, and on the messages between API and worker.
 */

const upgrade = await prepareUpgrade();
type Release = "last" | "this";

const checkoutOf = (release: Release) => (release === "last" ? upgrade.last : undefined);
const callers = 8;
const enough = 200; // Searches by what was replaced.
const organizationTerms = { creditMils: 1_000_000, terms: { windowLimit: 1_000_000, concurrency: 1_000 } };

/** A failing search is refunded, and each other one charged once, whatever release has it. @param api the number of the API. */
async function searchThrough(service: Service, api = 0): Promise<void> {
  const { organizationId, token } = await service.organization(organizationTerms);
  const search = (keyword: string, key?: string) =>
    service.search(token, { keyword }, { api, ...(key !== undefined && { key }) });
  const plain = Array.from({ length: 20 }, (_, n) => search(`plain ${n}`));
  const keyed = Array.from({ length: 5 }, (_, n) => search(`keyed ${n}`, `key-${n}`));
  const answers = await Promise.all([...plain, ...keyed]);
  expect(answers.filter(({ status, body }) => status !== 200 || body.creditsCharged !== 5)).toEqual([]);
  const first = answers.slice(plain.length);
  const again = await Promise.all(first.map((_, n) => search(`keyed ${n}`, `key-${n}`)));
  expect(again.map(({ text }) => text)).toEqual(first.map(({ text }) => text));
  expect((await search("refused")).status).toBeGreaterThanOrEqual(500);

  const kinds = (await service.chargesOf({ organizationId })).map(({ kind }) => kind);
  expect(kinds.toSorted()).toEqual([...answers.map(() => "charge"), "refund"]);
  expect((await service.usage(token, api)).body.creditBalanceMils).toBe(1_000_000 - 25 * 5);
}

/** What is wrong with the books, and what the processes logged as errors. */
async function faultsOf(service: Service): Promise<unknown[]> {
  const { violations } = await service.verify();
  const processes = [...service.apis, ...service.workers];
  return [...violations, ...processes.flatMap(({ errors, stderr }) => [...errors, ...(stderr === "" ? [] : [stderr])])];
}

const stub = await startSerperStub();
stub.otherwise = (request, response) =>
  (request.body["q"] === "refused" ? reply(400, { message: "Bad", statusCode: 400 }) : tenOrganic)(request, response);
afterAll(async () => {
  await stub.close();
  upgrade.remove();
});

test("an upgrade and a rollback under load, in the documented order, fail no search and charge each once", async () => {
  const servers = { database: await databaseOfLastRelease(), redis: await freshRedis() };
  const service = await Service.start({ apis: 0, workers: 0, environment: stub.settings, servers });
  try {
    const { stream, orgId, api } = await upgradeAndBack(service);
    const { answers, failures } = stream;
    expect(failures).toEqual([]);
    expect(answers.filter(({ body }) => body.creditsCharged !== 5)).toEqual([]);
    const charges = await service.chargesOf({ organizationId: orgId });
    expect(charges).toEqual(answers.map(() => ({ kind: "charge", mils: -5 })));
    await searchThrough(service, service.apis.indexOf(api));
    expect(await faultsOf(service)).toEqual([]);
  } finally {
    await service.stop();
  }
});

/** A database as the last release's migration leaves it. */
async function databaseOfLastRelease(): Promise<FreshDatabase> {
  // The first database of a server makes the role as which the processes log in.
  const other = await freshDatabase();
  const name = `last_${randomBytes(8).toString("hex")}`;
  await asOwner(other.url, (client) => client.query(`create database ${name}`));
  const url = Object.assign(new URL(other.url), { pathname: `/${name}` }).href;
  const environment = { DATABASE_URL: processUrlOf(url), MIGRATION_DATABASE_URL: url };
  const { exitCode, stdout, stderr } = await run(join(upgrade.last, "shared/database/migrate.ts"), [], environment);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^applied 001.do/);
  const drop = async () => {
    await asOwner(other.url, (client) => client.query(`drop database ${name} with (force)`));
    await other.drop();
  };
  return { url, drop };
}

async function migrateToThisRelease({ url }: { url: string }): Promise<void> {
  const applied = await migrate(url, { folder: upgrade.migrations });
  if (upgrade.isReleased) return;
  expect(applied).toHaveLength(3);
  await asOwner(url, (client) => client.query("grant select, insert on colours to serpmill"));
}

const createdOrganization = z.looseObject({ orgId: z.string(), token: z.string() });

/** An organization with credit for every search, and its token, as the last release's commands made them. */
async function organizationOfLastRelease({ processDatabaseUrl, redisServer }: Service) {
  const admin = async (...args: string[]) => {
    const environment = { DATABASE_URL: processDatabaseUrl, REDIS_URL: redisServer.url, SERP_PROVIDERS: "sandbox" };
    const { exitCode, stdout, stderr } = await run(join(upgrade.last, "commands/main.ts"), args, environment);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    return JSON.parse(stdout);
  };
  await admin("plan", "set", "wide", "--price", "5", "--limit", "1000000", "--window", "60", "--concurrency", "1000");
  const created = await admin("org", "create", "--name", "Test", "--plan", "wide", "--credit", "1000000");
  return createdOrganization.parse(created);
}

const both = async <T>(start: () => Promise<T>): Promise<[T, T]> => [await start(), await start()];

/**
 * Migrates, replaces two workers and then two APIs, and goes back, while callers search all the time.
 * @returns what they got, their organization, and an API of the last release that serves at the end.
 */
async function upgradeAndBack(service: Service): Promise<{ stream: SearchStream<Answer>; orgId: string; api: Api }> {
  const startWorkers = (release: Release) => both(() => service.startWorker({}, checkoutOf(release)));
  const startApis = async (release: Release) => {
    const started = await both(() => service.startApi({}, checkoutOf(release)));
    for (const api of started) await service.until(() => seesWorkers(api));
    return started;
  };
  let workers = await startWorkers("last");
  let apis = await startApis("last");
  const { token, orgId } = await organizationOfLastRelease(service);
  const stream = new SearchStream(service, callers, (nth) => {
    const api = service.apis.indexOf(nth % 2 === 0 ? apis[0] : apis[1]);
    return service.search(token, { keyword: `load ${nth}` }, { api, ...(nth % 3 === 0 && { key: `key-${nth}` }) });
  });
  const replaceWorkers = async (release: Release) => {
    const old = workers;
    workers = await startWorkers(release);
    expect(await Promise.all(old.map((worker) => worker.stop()))).toEqual([0, 0]);
    await stream.more(enough);
  };
  const replaceApis = async (release: Release) => {
    const old = apis;
    apis = await startApis(release);
    expect(await Promise.all(old.map((api) => api.stop()))).toEqual([0, 0]);
    await stream.more(enough);
  };
  try {
    await stream.more(enough);
    await migrateToThisRelease({ url: service.databaseUrl });
    await stream.more(enough);
    await replaceWorkers("this");
    await replaceApis("this");
    // The token of the last release keeps its scopes.
    expect(await service.usage(token, service.apis.indexOf(apis[0]))).toMatchObject({ status: 200 });
    await replaceApis("last");
    await replaceWorkers("last");
  } finally {
    await stream.end();
  }
  return { stream, orgId, api: apis[0] };
}
