import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, afterEach, expect, test } from "vitest";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { readRawAnswers } from "../../worker/raw-answers/raw-answers.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import { requestIdAt } from "../harness/fixtures/request-ids.ts";
import { codeLoading } from "../harness/processes/code-loading.ts";
import { Operator } from "../harness/processes/operator.ts";
import { Service } from "../harness/processes/service.ts";
import {
  disconnect,
  raw,
  type Reply,
  refusal,
  reply,
  startSerperStub,
  tenOrganic,
} from "../harness/stubs/serper-stub.ts";

/** `search raw`: what a provider answered, from the worker's call to the operator's terminal. */

const key = "canary-key-of-serper";
const kept = { RAW_ANSWER_MINUTES: "10" };

const stub = await startSerperStub(afterAll);
const service = await Service.start({
  workers: 0,
  environment: { ...stub.settings, SERPER_API_KEY: key },
  end: afterAll,
});
await service.startWorker({ ...kept, SEARCH_CACHE_SECONDS: "60" });
await service.until(() => Promise.all(service.apis.map(seesWorkers)).then((seen) => seen.every(Boolean)));
const operator = new Operator(service, kept);
const caller = await service.organization({ creditMils: 10_000 });
afterEach(() => {
  stub.otherwise = tenOrganic;
});

const search = (fields: object) => service.search(caller.token, fields);

/** The request id of a search, once `entries` of it are in Redis. They are stored in the background. */
async function keptSearch(fields: object, entries = 1): Promise<string> {
  const { requestId } = await search(fields);
  await service.until(async () => (await service.redis.llen(`raw:${requestId}`)) === entries);
  return requestId;
}

/** Ten results, and the key of the request in many places. */
const repeatsKey: Reply = (request, response) => {
  const organic = [{ title: `Pump ${request.key}`, link: `https://pumps.example/?key=${request.key}` }];
  reply(200, { organic, searchParameters: { ...request.body, key: request.key } })(request, response);
};

const call = {
  provider: "serper",
  at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
  ms: expect.any(Number),
  outcome: "ok",
  status: 200,
};

test("every call of a search is printed by page, with the body as it came and without our key", async () => {
  const requestId = await keptSearch({ keyword: "two pages", depth: 20 }, 2);
  const bodies = [1, 2].map((page) => expect.stringContaining(`"title":"Pump ${page}.10"`));
  const answers = bodies.map((body, at) => ({ ...call, page: at + 1, body, bodyCharacters: expect.any(Number) }));
  expect(await operator.run("search", "raw", requestId)).toEqual({
    requestId,
    from: "provider",
    callsOf: requestId,
    answers,
  });
  expect(await operator.run("search", "raw", requestId, "--page", "2")).toMatchObject({ answers: [{ page: 2 }] });

  stub.otherwise = repeatsKey;
  const repeated = await keptSearch({ keyword: "repeats the key" });
  expect(stub.requests.at(-1)?.key).toBe(key);
  const { stdout } = await operator.try("search", "raw", repeated);
  expect(stdout).toContain("Pump [secret]");
  expect(stdout + JSON.stringify(await readRawAnswers(service.redis, repeated))).not.toContain(key);
});

test("an answer that could not be read is kept too, and of a call without an answer the outcome", async () => {
  stub.next = [raw(200, "<html>a captive portal")];
  const unreadable = await keptSearch({ keyword: "unreadable" });
  const answer = { ...call, page: 1, outcome: "unreadable", body: "<html>a captive portal", bodyCharacters: 22 };
  expect(await operator.run("search", "raw", unreadable)).toMatchObject({ answers: [answer] });

  stub.next = [refusal(503, "too much to do"), disconnect];
  const failed = await keptSearch({ keyword: "failed" }, 2);
  expect(await operator.run("search", "raw", failed)).toMatchObject({
    answers: [
      { outcome: "unavailable", status: 503, body: expect.stringContaining("too much to do") },
      { outcome: "unavailable", status: null, body: null, bodyCharacters: 0 },
    ],
  });
  expect(await operator.try("search", "raw", failed, "--body")).toEqual({
    exitCode: 0,
    stdout: '{"message":"too much to do","statusCode":503}\n',
    stderr: "serper, page 1: no answer came (unavailable).\n",
  });
});

test("--body prints only the bodies, each on lines of its own, and fails if there is none", async () => {
  stub.otherwise = ({ body }, response) => {
    const organic = [{ title: "Pump", link: `https://pumps.example/${String(body["page"])}` }];
    response.end(JSON.stringify({ organic, page: body["page"] }));
  };
  const requestId = await keptSearch({ keyword: "bodies" });
  const { exitCode, stdout, stderr } = await operator.try("search", "raw", requestId, "--body");
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^\{"organic":.*"page":1\}\n$/);

  stub.otherwise = disconnect;
  const failed = await keptSearch({ keyword: "no body" }, 2);
  const empty = await operator.try("search", "raw", failed, "--page", "1", "--body");
  expect(empty).toMatchObject({ exitCode: 1, stdout: "" });
  expect(empty.stderr).toMatch(/^(serper, page 1: no answer came \(unavailable\)\.\n){2}$/);
});

test("a reader that has enough of a body ends the command without an error", async () => {
  stub.next = [raw(200, "x".repeat(500_000))];
  const requestId = await keptSearch({ keyword: "head" });
  const pipe = '"$0" commands/main.ts search raw "$1" --body | head -c 3';
  const env = {
    ...codeLoading,
    PATH: "/usr/bin:/bin",
    DATABASE_URL: service.processDatabaseUrl,
    REDIS_URL: service.redisServer.url,
    SERP_PROVIDERS: "sandbox",
  };
  const run = (script: string) => promisify(execFile)("/bin/sh", ["-c", script, process.execPath, requestId], { env });
  expect(await run(pipe)).toEqual({ stdout: "xxx", stderr: "" });
  const inVain = await run('{ { "$0" commands/main.ts org show none 2>&1; echo $? >&3; } | true; } 3>&1');
  expect(inVain).toEqual({ stdout: "2\n", stderr: "" });
});

test("a search that shared another's call, or got its answer from the cache, names that one and prints its calls", async () => {
  const release = stub.hold();
  const pending = [search({ keyword: "the same" }), search({ keyword: "the same" })];
  await service.untilRunning(2);
  // The worker begins its searches in the order of the queue: once this one calls, both of the others are under way.
  const next = search({ keyword: "another" });
  await service.until(async () => stub.requests.some(({ body }) => body["q"] === "another"));
  release();
  await next;
  const ids = (await Promise.all(pending)).map(({ requestId }) => requestId);
  const lists = () => Promise.all(ids.map((id) => readRawAnswers(service.redis, id)));
  await service.until(async () => (await lists()).every((list) => list !== undefined));
  const at = (await lists()).findIndex((list) => list?.answers.length === 1);
  const [callsOf = "", shared = ""] = at === 0 ? ids : ids.toReversed();
  const answers = [{ page: 1, body: expect.stringContaining("Pump 1.1") }];
  expect(await operator.run("search", "raw", callsOf)).toMatchObject({ requestId: callsOf, from: "provider", answers });
  expect(await operator.run("search", "raw", shared)).toMatchObject({ from: "shared", callsOf, answers });
  const { stderr } = await operator.try("search", "raw", shared, "--body");
  expect(stderr).toBe(`${shared} made no call: these are the answers to ${callsOf}.\n`);

  const cached = await keptSearch({ keyword: "the same" });
  expect(await operator.run("search", "raw", cached)).toMatchObject({ from: "cache", callsOf, answers });
  await service.redis.del(`raw:${callsOf}`);
  expect((await operator.try("search", "raw", cached)).stderr).toBe(
    `${cached} made no call. It shared the answer of ${callsOf}, whose raw answers have expired.\n`,
  );
});

/** A search of this age that the ledger has. */
async function searchBegun(minutesAgo: number): Promise<string> {
  const requestId = idBegun(minutesAgo);
  const refund = {
    requestId,
    organizationId: caller.organizationId,
    wanted: "refund",
    reason: "provider_unavailable",
  } as const;
  await decideSettlements(service.database, [{ ...refund, key: undefined }]);
  return requestId;
}

const idBegun = (minutesAgo: number) => requestIdAt(Date.now() - minutesAgo * 60_000);

async function refusalOf(requestId: string, settings: Record<string, string> = kept, ...options: string[]) {
  const result = await new Operator(service, settings).try("search", "raw", requestId, ...options);
  expect(result).toMatchObject({ exitCode: 1, stdout: "" });
  return result.stderr.replaceAll(requestId, "REQ");
}

test("without raw answers the command says why: never called, off, expired, running, unknown, another page", async () => {
  expect(await refusalOf(await keptSearch({ keyword: "unknown place", location: "Blah, Germany" }))).toBe(
    "REQ ended before a provider was called.\n",
  );
  const off =
    "No raw answers of REQ are kept: RAW_ANSWER_MINUTES is 0, the default. Set it for the workers, and for this command, before the search.\n";
  expect(await refusalOf(await searchBegun(0), {})).toBe(off);
  expect(await refusalOf(await searchBegun(60), {})).toBe(off);
  expect(await refusalOf(await searchBegun(60))).toMatch(
    /^No raw answers of REQ are kept: they have expired. The search began at 2\d{3}-.*Z, and RAW_ANSWER_MINUTES is 10\.\n$/,
  );
  expect(await refusalOf(await searchBegun(11))).toMatch(/^No raw answers of REQ are kept: they have expired, /);
  expect(await refusalOf(idBegun(0))).toMatch(/ kept: the search still runs, was refused before it ran, or does not/);
  for (const settings of [kept, {}])
    expect(await refusalOf(idBegun(60), settings)).toMatch(/ kept: the search does not exist, or was refused/);
  const onePage = await keptSearch({ keyword: "one page" });
  expect(await refusalOf(onePage, kept, "--page", "2")).toBe("REQ made no call for page 2.\n");
});

test("by default a worker leaves no raw answer in Redis", async () => {
  await service.workers[0]?.stop();
  const before = await service.redis.keys("raw:*");
  await service.startWorker();
  await service.until(async () => (await search({ keyword: "by default", depth: 20 })).status === 200);
  // A worker that stops stores what waits.
  expect(await service.workers[1]?.stop()).toBe(0);
  expect(before.length).toBeGreaterThan(0);
  expect((await service.redis.keys("raw:*")).filter((name) => !before.includes(name))).toEqual([]);
});
