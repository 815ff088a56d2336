import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../../harness/assertions/eventually.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { googleOver } from "../../harness/processes/google-engine.ts";
import { answerOf, FakeGoogle, openWorkerEngine, outOfTime } from "../../harness/processes/worker-engine.ts";
import { freshRedis } from "../../harness/servers/servers.ts";
import { openOneSlot } from "./one-slot.ts";

/** Equal searches of one worker. distributed-single-flight.test.ts has what is the same across workers. */

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

test("a shared answer costs once, and the metrics say what the other searches saved", async () => {
  google.otherwise = answerOf();
  const answers = await Promise.all([1, 2, 3].map(() => worker.search()));
  expect(answers.map(({ trace }) => [trace.provider, trace.costMicroUsd])).toEqual([
    ["fake", 1_000],
    ["fake", 0],
    ["fake", 0],
  ]);
  expect(await worker.metric('answered_searches_total{from="shared"}')).toBe(2);
  expect(await worker.metric('provider_cost_saved_micro_usd_total{from="shared"}')).toBe(2_000);
});

test("searches are equal whatever their target domain, types and format, but not if another field differs", async () => {
  google.otherwise = answerOf();
  const filters = [{ targetDomain: "pumps.example" }, { types: ["video"] }, { format: "compact" }];
  await Promise.all([{}, ...filters].map((fields) => worker.search(fields)));
  expect(google.searches).toHaveLength(1);
  const others = [{ keyword: "pump" }, { depth: 11 }, { language: "German" }, { location: "Germany" }];
  await Promise.all([...others, { device: "mobile" }].map((fields) => worker.search(fields)));
  expect(google.searches).toHaveLength(6);
});

test("a search that waits for a call of its worker shares the answer, also if the worker's clock says that it came before", async () => {
  const first = worker.search();
  await google.hasSearches(1);
  const later = worker.search({}, { enqueuedAtMs: worker.clock.nowMs() + 60_000 });
  google.answer(0, answerOf());
  expect(await Promise.all([first, later])).toMatchObject([{ from: "provider" }, { from: "shared" }]);
  expect(google.searches).toHaveLength(1);
});

test("after a flight that failed for lack of time, the waiting search with the most time starts the next one", async () => {
  const remainingMs = [20_000, 30_000, 60_000];
  const searches = remainingMs.map((each) => worker.search({}, { remainingMs: each }));
  await google.hasSearches(1);
  google.answer(0, outOfTime);
  await google.hasSearches(2);
  expect(google.searches[1]?.remainingMs).toBeGreaterThan(30_000);
  google.answer(1, answerOf());
  expect(await Promise.all(searches)).toMatchObject([{ ok: false }, { ok: true, from: "shared" }, { ok: true }]);
});

test("a small organization's search gets its own turn at the provider, also if a large one waits with the same query", async () => {
  const { provider, calls } = openOneSlot();
  const engine = googleOver(provider);
  const one = await openWorkerEngine(engine, { REDIS_URL: redisServer.url });
  const large = Array.from({ length: 10 }, (_, at) =>
    one.search({ keyword: `k${at}` }, { claim: { organizationId: "large", openSearches: at + 1 } }),
  );
  await eventually(async () => engine.callsWaiting() === 9);
  const caller = new AbortController();
  const gone = one.search(
    { keyword: "k8" },
    { claim: { organizationId: "gone", openSearches: 1 }, disconnected: caller.signal },
  );
  caller.abort();
  expect(await gone).toMatchObject({ ok: false });
  const small = one.search({ keyword: "k9" }, { claim: { organizationId: "small", openSearches: 1 } });
  calls[0]?.end();
  expect(await large[0]).toMatchObject({ ok: true });
  await eventually(async () => calls.length === 2);
  expect(calls[1]?.keyword).toBe("k9");
  calls[1]?.end();
  expect(await small).toMatchObject({ ok: true, from: "shared" });
  for (let ended = 2; ended < 10; ended += 1) {
    await eventually(async () => calls.length > ended);
    calls[ended]?.end();
  }
  await Promise.all(large);
  expect(calls).toHaveLength(10);
});

describe("a search whose caller disconnects", () => {
  test("leaves its flight, and ends when the flight's calls have ended", async () => {
    const caller = new AbortController();
    const search = worker.search({}, { disconnected: caller.signal });
    await google.hasSearches(1);
    expect(google.isDisconnected(0)).toBe(false);
    caller.abort();
    expect(google.isDisconnected(0)).toBe(true);
    google.answer(0, outOfTime);
    expect(await search).toMatchObject({ ok: false, from: "provider" });
  });

  test("leaves its flight to the searches that wait for it; once all have left, the flight is disconnected", async () => {
    const callers = [1, 2, 3].map(() => new AbortController());
    const searches = callers.map((caller) => worker.search({}, { disconnected: caller.signal }));
    await google.hasSearches(1);
    callers[0]?.abort();
    callers[1]?.abort();
    // It only waited, so it ends at once.
    expect(await searches[1]).toMatchObject({ ok: false, from: "shared" });
    expect(google.isDisconnected(0)).toBe(false);
    callers[2]?.abort();
    await eventually(async () => google.isDisconnected(0));
    google.answer(0, outOfTime);
    await Promise.all(searches);
    expect(google.searches).toHaveLength(1);
  });

  test("does not take the answer from the others", async () => {
    const caller = new AbortController();
    const began = worker.search({}, { disconnected: caller.signal });
    await google.hasSearches(1);
    const waiting = worker.search();
    caller.abort();
    google.answer(0, answerOf("whole"));
    expect(await waiting).toMatchObject({ ok: true, results: [{ title: "whole" }], from: "shared", payable: {} });
    expect((await began).payable).toBeUndefined();
    expect(google.searches).toHaveLength(1);
  });

  test("keeps no later search waiting for its last calls", async () => {
    const caller = new AbortController();
    const began = worker.search({}, { disconnected: caller.signal });
    await google.hasSearches(1);
    caller.abort();
    const later = worker.search();
    await google.hasSearches(2);
    google.answer(1, answerOf("new"));
    expect(await later).toMatchObject({ ok: true, results: [{ title: "new" }], from: "provider" });
    google.answer(0, outOfTime);
    await began;
    await eventually(async () => (await worker.redis.keys("lease:*")).length === 0);
  });

  test("before it began calls no provider", async () => {
    const caller = new AbortController();
    caller.abort();
    expect(await worker.search({}, { disconnected: caller.signal })).toMatchObject({ ok: false });
    expect(google.searches).toEqual([]);
  });
});
