import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { findRedisBinary } from "../../../local/redis-binary.ts";
import { newId } from "../../../shared/ids.ts";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { readSource, sources } from "../../harness/assertions/sources.ts";
import { Agent } from "../../harness/clients/agent.ts";
import { forgetSignIns, ownForm, PageVisitor } from "../../harness/clients/page-visitor.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { GuardedFolder } from "../../harness/processes/guarded-folder.ts";
import { Operator } from "../../harness/processes/operator.ts";
import { Service } from "../../harness/processes/service.ts";
import { acceptsLogin, addRedisUsers, usualPasswords } from "../../harness/servers/redis-users.ts";
import { freshRedis } from "../../harness/servers/servers.ts";
import { startSerperStub } from "../../harness/stubs/serper-stub.ts";
import { eventOf, StripeStub } from "../../harness/stubs/stripe-stub.ts";

/** The users of deploy/redis: the whole service runs as them, and they may do nothing else. */

const [stripe, serper] = await Promise.all([StripeStub.start(), startSerperStub()]);
const environment = {
  ...stripe.environment,
  ...serper.settings,
  SEARCH_CACHE_SECONDS: "60",
  RAW_ANSWER_MINUTES: "10",
  SEARCH_DEADLINE_MS: "20000",
};
const service = await Service.start({ apis: 0, workers: 0, environment });
const urls = await addRedisUsers(service.redisServer);
await service.startWorker({ REDIS_URL: urls.worker });
const api = await service.startApi({ REDIS_URL: urls.api });
await service.until(() => seesWorkers(api));
afterAll(async () => {
  await service.stop();
  await Promise.all([stripe.close(), serper.close()]);
});

const refusedCommand = z.object({ reason: z.string(), object: z.string(), username: z.string(), context: z.string() });

/** What Redis refused to its users, as `api: key inbox:1 (toplevel)`. */
async function refusals(): Promise<string[]> {
  const entries = z.array(z.array(z.unknown())).parse(await service.redis.call("ACL", "LOG"));
  return entries.map((entry) => {
    const fields = Object.fromEntries(entry.flatMap((name, at) => (at % 2 ? [] : [[String(name), entry[at + 1]]])));
    const { reason, object, username, context } = refusedCommand.parse(fields);
    return `${username}: ${reason} ${object} (${context})`;
  });
}

/** The answers of the queue's dashboard to what its pages ask for. */
async function dashboardAnswers(): Promise<number[]> {
  const job = (await service.redis.lrange(queueKeys.running, 0, 0))[0] ?? "";
  const paths = [
    "queues?activeQueue=searches&status=latest",
    "redis/stats",
    "job-schedulers",
    "queues/searches/metrics",
    `queues/searches/${job}`,
    `queues/searches/${job}/flow`,
  ];
  const ask = async (path: string) => (await fetch(`${service.apis[0]?.opsUrl}/queues/api/${path}`)).status;
  return Promise.all(paths.map(ask));
}

test("searches, repeats, disconnects, agents, the account pages, top-ups, the dashboard and workers that end need no more", async () => {
  await service.redis.zadd(queueKeys.failed, 1, newId("req")); // Maintenance deletes it.
  const { organizationId, token } = await service.organization({ creditMils: 1_000 });
  expect(await service.search(token, { keyword: "tea" })).toMatchObject({ status: 200 });
  const same = Array.from({ length: 3 }, () => service.search(token, { keyword: "green tea" }, { key: "one" }));
  for (const answer of await Promise.all(same)) expect(answer.status).toBe(200);
  expect(await service.search(token, { keyword: "tea" })).toMatchObject({ status: 200 });
  expect(await service.usage(token)).toMatchObject({ status: 200 });
  const agent = await Agent.connect(service, token);
  expect(await agent.call("serp_search", { keyword: "agent" })).toMatchObject({ isError: false });
  await agent.close();

  const visitor = new PageVisitor(service);
  await visitor.signIn(token);
  expect(await visitor.get("/billing")).toMatchObject({ status: 200 });
  const live = new AbortController();
  const { events } = await visitor.follow(undefined, live.signal);
  expect((await events.next()).done).toBe(false);
  live.abort();
  await visitor.post("/billing/sign-out", {}, ownForm);
  await forgetSignIns(service);
  expect(await sendEvent(service, eventOf(stripe.paid(organizationId, 1_000)))).toMatchObject(acknowledged);

  const release = serper.hold();
  const caller = new AbortController();
  const disconnected = service
    .search(token, { keyword: "disconnected" }, { signal: caller.signal })
    .catch(() => undefined);
  const flushed = service.search(token, { keyword: "taken over" });
  await service.untilRunning(2);
  expect(await dashboardAnswers()).toEqual([200, 200, 200, 200, 200, 200]);
  caller.abort();
  await disconnected;
  service.workers[0]?.kill("SIGKILL");
  await service.startWorker({ REDIS_URL: urls.worker });
  release();
  expect(await flushed).toMatchObject({ status: 200 });
  await service.rest();
  await eventually(async () => (await service.redis.exists(queueKeys.failed)) === 0);
  expect(await service.workers[1]?.stop()).toBe(0);
  expect(await service.apis[0]?.stop()).toBe(0);
  expect(await refusals()).toEqual([]);
});

test("the operator's commands run as the API's user", async () => {
  const operator = new Operator(service, { REDIS_URL: urls.api });
  const { orgId, tokenId } = await operator.create("free", "--credit", "50");
  await operator.run("credit", "grant", orgId, "100");
  await operator.run("org", "suspend", orgId);
  await operator.run("org", "resume", orgId);
  await operator.run("plan", "assign", orgId, "payg");
  await operator.run("token", "issue", orgId);
  await operator.run("token", "revoke", tokenId);
  expect(await operator.run("ledger", "verify")).toMatchObject({ ok: true, redisChecked: true });
  expect((await operator.try("search", "raw", newId("req"))).stderr).toMatch(/^No raw answers of req_/);
  expect(await operator.try("org", "export", orgId)).toMatchObject({ exitCode: 0 });
  expect(await operator.run("org", "erase", orgId, "--yes")).toMatchObject({ erased: true });
  expect(await refusals()).toEqual([]);
});

test.each(["api", "worker"] as const)(
  "the %s's user works in the database whose number REDIS_URL has",
  async (user) => {
    const redis = new Redis(Object.assign(new URL(urls[user]), { pathname: "/1" }).href);
    const inFirst = service.redis.duplicate({ db: 1 });
    try {
      await redis.rpush(`inbox:of-${user}`, "here");
      expect(await inFirst.exists(`inbox:of-${user}`)).toBe(1);
    } finally {
      redis.disconnect();
      inFirst.disconnect();
    }
  },
);

test.each(["api", "worker"] as const)(
  "the %s's user may not read the settings, list keys or empty Redis",
  async (user) => {
    const redis = new Redis(urls[user]);
    try {
      for (const command of [
        ["CONFIG", "GET", "*"],
        ["CONFIG", "SET", "maxmemory", "1"],
        ["KEYS", "*"],
        ["SCAN", "0"],
        ["FLUSHALL"],
        ["FLUSHDB"],
        ["SCRIPT", "FLUSH"],
        ["FUNCTION", "LIST"],
        ["ACL", "LIST"],
        ["MODULE", "LIST"],
        ["CLIENT", "LIST"],
        ["CLIENT", "KILL", "TYPE", "normal"],
        ["SAVE"],
        ["REPLICAOF", "127.0.0.1", "1"],
        ["SHUTDOWN"],
        ["MONITOR"],
        ["SET", "other", "1"],
        ["GET", user === "api" ? "lease:1" : "session:1"],
        user === "api" ? ["SET", "maintenance", "1"] : ["LRANGE", "raw:1", "0", "-1"],
        ["PUBLISH", "other", "1"],
        ["EVAL", "return redis.call('KEYS', '*')", "0"],
      ] as const) {
        const [name, ...args] = command;
        const refusal: unknown = await redis.call(name, ...args).catch((error: Error) => error.message);
        expect({ command, refusal }).toEqual({
          command,
          refusal: expect.stringMatching(/NOPERM|can't run this|has no permissions/),
        });
      }
    } finally {
      redis.disconnect();
      await service.redis.call("ACL", "LOG", "RESET");
    }
  },
);

test("a password that is in no file any more is refused, also if its user has no other", async () => {
  const folder = await GuardedFolder.create("serpmill-passwords-");
  onTestFinished(() => folder.remove());
  const server = await freshRedis();
  onTestFinished(() => server.stop());
  const usersFile = { USERS_FILE: join(folder.path, "users.acl") };
  await addRedisUsers(server, { ...usualPasswords, ...usersFile });
  const accepts = (username: string, password: string) =>
    acceptsLogin(Object.assign(new URL(server.url), { username, password }).href);
  expect(await accepts("proxy", usualPasswords.REDIS_PROXY_PASSWORD)).toBe(true);

  const { command } = await findRedisBinary();
  const cli = [command.replace(/server$/, "cli"), "-p", new URL(server.url).port];
  const { REDIS_PROXY_PASSWORD, ...left } = usualPasswords;
  const env = { PATH: "/usr/bin:/bin", ...left, ...usersFile };
  await promisify(execFile)("sh", ["deploy/redis/accept-passwords.sh", ...cli], { env });
  expect(await accepts("proxy", REDIS_PROXY_PASSWORD)).toBe(false);
  expect(await accepts("api", usualPasswords.REDIS_API_PASSWORD)).toBe(true);
});

// BullMQ's scripts that the product runs. Some of them only run when a worker dies or stops.
const queueScripts = {
  api: [
    "addStandardJob-9",
    "removeJob-2",
    // Of the dashboard.
    "getCounts-1",
    "getRanges-1",
    "getRateLimitTtl-2",
    "getStateV2-8",
    "getDependencyCounts-4",
    "getMetrics-2",
  ],
  worker: [
    "moveToActive-11",
    "moveToFinished-14",
    "extendLocks-1",
    "moveStalledJobsToWait-9",
    "moveJobFromActiveToWait-9",
  ],
};

// The dashboard's scripts remove a marker that only queues of BullMQ 4 have.
const neverRun = new Set(["rpop"]);

const commandsIn = (text: string) =>
  [...text.matchAll(/\b(?:rcall|redis\.p?call)\(\s*['"](\w+)/g)].map(([, name = ""]) => name.toLowerCase());

test.each(["api", "worker"] as const)(
  "every command of a script that the %s runs is allowed to its user",
  async (user) => {
    const scripts = sources(`{shared,${user}}/**/*.lua`).map(({ text }) => text);
    const ofQueue = queueScripts[user].map((name) => readSource(`node_modules/bullmq/dist/esm/scripts/${name}.js`));
    const used = new Set([...scripts, ...ofQueue].flatMap(commandsIn));
    expect(used.size).toBeGreaterThan(20);
    const rules = readSource("deploy/redis/users.acl").split(/^user /m);
    const own = rules.find((text) => text.startsWith(`${user} `)) ?? "";
    const allowed = new Set([...own.matchAll(/ \+(\S+)/g)].map(([, name]) => name));
    expect([...used].filter((name) => !allowed.has(name) && !neverRun.has(name))).toEqual([]);
  },
);
