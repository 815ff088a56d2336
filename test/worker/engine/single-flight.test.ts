import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { answerOf, FakeGoogle, openWorkerEngine, outOfTime, refused } from "../../harness/processes/worker-engine.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

let redisServer: LocalServer;
let google: FakeGoogle;
let worker: Awaited<ReturnType<typeof openWorkerEngine>>;

beforeAll(async () => {
  redisServer = await freshRedis();
});
afterAll(() => redisServer.stop());
beforeEach(async () => {
  google = new FakeGoogle();
  google.otherwise = undefined;
  worker = await openWorkerEngine(google, { REDIS_URL: redisServer.url });
  await worker.redis.flushall();
});

test("concurrent equal searches call the provider once, and all get its results", async () => {
  const searches = Array.from({ length: 50 }, () => worker.search());
  await google.hasSearches(1);
  google.answer(0, answerOf("shared"));
  const answers = await Promise.all(searches);
  expect(answers.filter((answer) => answer.ok && answer.results[0]?.title === "shared")).toHaveLength(50);
  expect(answers.map(({ from }) => from)).toEqual(["provider", ...Array.from({ length: 49 }, () => "shared")]);
  expect(google.searches).toHaveLength(1);
});

test("a shared answer costs once, and the metrics say what the other searches saved", async () => {
  google.otherwise = answerOf();
  const answers = await Promise.all([1, 2, 3].map(() => worker.search()));
  expect(answers.map(({ trace }) => [trace.provider, trace.costMicroUsd])).toEqual([
    ["fake", 1_000],
    ["fake", 0],
    ["fake", 0],
  ]);
  expect(await worker.metric('searches_asked_total{from="shared"}')).toBe(2);
  expect(await worker.metric('provider_cost_saved_micro_usd_total{from="shared"}')).toBe(2_000);
});

test("searches are equal whatever their target domain, but not if another field differs", async () => {
  google.otherwise = answerOf();
  await Promise.all([worker.search(), worker.search({ targetDomain: "pumps.example" })]);
  expect(google.searches).toHaveLength(1);
  const others = [{ keyword: "pump" }, { depth: 11 }, { language: "German" }, { location: "Germany" }];
  await Promise.all([...others, { device: "mobile" }].map((fields) => worker.search(fields)));
  expect(google.searches).toHaveLength(6);
});

test("the searches that waited share a failure, and later searches call the provider again", async () => {
  const both = [worker.search(), worker.search()];
  await google.hasSearches(1);
  google.answer(0, refused);
  for (const answer of await Promise.all(both)) {
    expect(answer).toMatchObject({ ok: false, code: "engine_error", details: { reason: "provider_refused" } });
  }
  google.otherwise = answerOf();
  expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
});

test("a failure for lack of time is not shared: a search that has more time calls the provider again", async () => {
  const short = worker.search({}, { remainingMs: 10_000 });
  await google.hasSearches(1);
  const long = [worker.search(), worker.search()];
  google.answer(0, outOfTime);
  expect(await short).toMatchObject({ ok: false, code: "engine_timeout" });
  await google.hasSearches(2);
  google.answer(1, answerOf());
  expect(await Promise.all(long)).toMatchObject([{ ok: true }, { ok: true }]);
  expect(google.searches).toHaveLength(2);
});

test("a search ends at its own deadline, however long the flight takes that it waits for", async () => {
  const first = worker.search();
  await google.hasSearches(1);
  expect(await worker.search({}, { remainingMs: 20 })).toMatchObject({ ok: false, code: "engine_timeout" });
  google.answer(0, answerOf());
  expect(await first).toMatchObject({ ok: true });
});

test("a search does not share an answer from before it was enqueued", async () => {
  const first = worker.search();
  await google.hasSearches(1);
  const later = worker.search({}, { enqueuedAtMs: worker.clock.nowMs() + 60_000 });
  google.answer(0, answerOf("old"));
  expect(await first).toMatchObject({ ok: true });
  await google.hasSearches(2);
  google.answer(1, answerOf("new"));
  expect(await later).toMatchObject({ ok: true, results: [{ title: "new" }], from: "provider" });
});
