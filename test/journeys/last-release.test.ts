import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { migrate } from "../../shared/database/migrate.ts";
import { prepareUpgrade } from "../harness/processes/last-release.ts";
import { run } from "../harness/processes/run.ts";
import { type Answer, type Api, Service, type Worker } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import type { FreshDatabase } from "../harness/servers/fresh-database.ts";
import { freshDatabase, freshRedis } from "../harness/servers/servers.ts";
import { reply, type SerperStub, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";
import { processUrlOf } from "../../local/postgres.ts";

/**
 * Processes of the last release and of this one, side by side, as during an upgrade and a rollback. The releases agree on
 * the schema, on what is in Redis, and on the messages between API and worker.
 */

const upgrade = await prepareUpgrade();
type Release = "last" | "this";
let stub: SerperStub;

const checkoutOf = (release: Release) => (release === "last" ? upgrade.last : undefined);
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

  await service.rest();
  const kinds = Map.groupBy(await service.ledgerOf(organizationId), ({ kind }) => kind);
  expect([kinds.get("charge")?.length, kinds.get("refund")?.length, kinds.get("reversal")]).toEqual([25, 1, undefined]);
  expect((await service.usage(token, api)).body.creditBalanceMils).toBe(1_000_000 - 25 * 5);
}

/** What is wrong with the books, and what the processes logged as errors. */
async function faultsOf(service: Service): Promise<unknown[]> {
  const { violations } = await service.verify();
  const processes = [...service.apis, ...service.workers];
  return [...violations, ...processes.flatMap(({ errors, stderr }) => [...errors, ...(stderr === "" ? [] : [stderr])])];
}

beforeAll(async () => {
  stub = await startSerperStub();
  stub.otherwise = (request, response) =>
    (request.body["q"] === "refused" ? reply(400, { message: "Bad", statusCode: 400 }) : tenOrganic)(request, response);
});
afterAll(async () => {
  await stub.close();
  upgrade.remove();
});

const pairs: { api: Release; worker: Release }[] = [
  { api: "last", worker: "last" },
  { api: "last", worker: "this" },
  { api: "this", worker: "last" },
];

// Before the first release all pairs are the same.
test.each(upgrade.isReleased ? pairs : pairs.slice(0, 1))(
  "an API of the $api release and a worker of the $worker release settle each search once on the new schema",
  async (of) => {
    const servers = { database: await databaseOfLastRelease(), redis: await freshRedis() };
    await migrateToThisRelease(servers.database);
    const service = await Service.start({ apis: 0, workers: 0, environment: stub.settings, servers });
    try {
      await service.startWorker({}, checkoutOf(of.worker));
      const api = await service.startApi({}, checkoutOf(of.api));
      await service.until(() => seesWorkers(api));
      await searchThrough(service);
      expect(await faultsOf(service)).toEqual([]);
    } finally {
      await service.stop();
    }
  },
);

test("an upgrade and a rollback in the documented order fail no search: migration, workers, APIs, and back", async () => {
  const servers = { database: await databaseOfLastRelease(), redis: await freshRedis() };
  const service = await Service.start({ apis: 0, workers: 0, environment: stub.settings, servers });
  try {
    const { answers, serving } = await upgradeAndBack(service);
    expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
    await searchThrough(service, service.apis.indexOf(serving));
    expect(await faultsOf(service)).toEqual([]);
  } finally {
    await service.stop();
  }
});

test("a migration under load fails no search, and each is charged once, with and without a key", async () => {
  const servers = { database: await databaseOfLastRelease(), redis: await freshRedis() };
  const service = await Service.start({ apis: 0, workers: 0, environment: stub.settings, servers });
  try {
    for (let n = 0; n < 2; n += 1) await service.startWorker({}, upgrade.last);
    for (let n = 0; n < 2; n += 1) await service.startApi({}, upgrade.last);
    for (const api of service.apis) await service.until(() => seesWorkers(api));
    const { token, orgId } = await organizationOfLastRelease(service);
    const answers: Answer[] = [];
    const over = new AbortController();
    let asked = 0;
    const ask = async () => {
      while (!over.signal.aborted) {
        const n = (asked += 1);
        const key = n % 3 === 0 ? { key: `key-${n}` } : {};
        answers.push(await service.search(token, { keyword: `load ${n}` }, { api: n % 2, ...key }));
      }
    };
    const asking = Promise.all(Array.from({ length: 24 }, ask));
    const manyAnswers = () => {
      const before = answers.length;
      return service.until(async () => answers.length >= before + 200);
    };
    try {
      await manyAnswers();
      await migrateToThisRelease({ url: service.databaseUrl });
      await manyAnswers();
    } finally {
      over.abort();
      await asking;
    }
    expect(answers.filter(({ status, body }) => status !== 200 || body.creditsCharged !== 5)).toEqual([]);
    await service.rest();
    const kinds = Map.groupBy(await service.ledgerOf(orgId), ({ kind }) => kind);
    expect([...kinds.keys()].toSorted()).toEqual(["charge", "grant"]);
    expect(kinds.get("charge")).toHaveLength(answers.length);
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

/** @returns what callers got who searched all the time, and the API of the last release that serves at the end. */
async function upgradeAndBack(service: Service): Promise<{ answers: Answer[]; serving: Api }> {
  await service.startWorker({}, upgrade.last);
  let serving = await service.startApi({}, upgrade.last);
  await service.until(() => seesWorkers(serving));
  const { token } = await organizationOfLastRelease(service);
  const answers: Answer[] = [];
  const over = new AbortController();
  const ask = async () => {
    while (!over.signal.aborted) {
      const keyword = `upgrade ${answers.length}`;
      answers.push(await service.search(token, { keyword }, { api: service.apis.indexOf(serving) }));
    }
  };
  const asking = Promise.all(Array.from({ length: 4 }, ask));
  const nextAnswers = async () => {
    const before = answers.length;
    await service.until(async () => answers.length >= before + 20);
  };
  const replaceWorker = async (old: Worker | undefined, release: Release) => {
    await service.startWorker({}, checkoutOf(release));
    expect(await old?.stop()).toBe(0);
    await nextAnswers();
  };
  const replaceApi = async (old: Api, release: Release) => {
    const next = await service.startApi({}, checkoutOf(release));
    await service.until(() => seesWorkers(next));
    serving = next;
    expect(await old.stop()).toBe(0);
    await nextAnswers();
  };
  try {
    await nextAnswers();
    await migrateToThisRelease({ url: service.databaseUrl });
    await nextAnswers();
    await replaceWorker(service.workers[0], "this");
    await replaceApi(serving, "this");
    // The token of the last release keeps its scopes.
    expect(await service.usage(token, service.apis.indexOf(serving))).toMatchObject({ status: 200 });
    await replaceApi(serving, "last");
    await replaceWorker(service.workers[1], "last");
  } finally {
    over.abort();
    await asking;
  }
  return { answers, serving };
}
