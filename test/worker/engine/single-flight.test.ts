import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { eventually } from "../../harness/assertions/eventually.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { googleOver } from "../../harness/processes/google-engine.ts";
import { answerOf, FakeGoogle, openWorkerEngine, outOfTime, refused } from "../../harness/processes/worker-engine.ts";
import { queryFingerprint, searchedPart } from "../../../shared/query/query.ts";
import { announcingOverviews, openOneSlot } from "./one-slot.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

let redisServer = await freshRedis();
let google: FakeGoogle;

afterAll(() => redisServer.stop());
beforeEach(async () => {
  google = new FakeGoogle();
  google.otherwise = undefined;
  await (await openEngine()).redis.flushall();
});

const openEngine = () => openWorkerEngine(google, { REDIS_URL: redisServer.url });
const openTwo = () => Promise.all([openEngine(), openEngine()]);
type Worker = Awaited<ReturnType<typeof openEngine>>;
const claim = (organizationId: string, openSearches: number) => ({ claim: { organizationId, openSearches } });

/** The key of the only flight. */
async function flightKey({ redis }: Worker): Promise<string> {
  const [key] = await redis.keys("lease:*");
  if (key === undefined) throw new Error("There is no flight.");
  return key;
}

const hasField = (worker: Worker, field: string) =>
  eventually(async () => (await worker.redis.hexists(await flightKey(worker), field)) === 1);
/** Waits until one worker searches and the other one waits for it. */
async function oneFlight(worker: Worker): Promise<void> {
  await google.hasSearches(1);
  await hasField(worker, "awaited");
}

describe.each([1, 2])("equal searches of %i worker(s)", (workers) => {
  /** The first and the last worker, which may be the same. */
  async function openAll() {
    const one = await openEngine();
    return [one, workers === 1 ? one : await openEngine()] as const;
  }
  const untilShared = (worker: Worker) => (workers === 1 ? google.hasSearches(1) : oneFlight(worker));

  test("call the provider once, and all get its results", async () => {
    const [one, other] = await openAll();
    const searches = Array.from({ length: 20 }, () => [one.search(), other.search()]).flat();
    await untilShared(one);
    google.answer(0, answerOf("shared"));
    const answers = await Promise.all(searches);
    expect(answers.every((answer) => answer.ok && answer.results[0]?.title === "shared")).toBe(true);
    expect(answers.filter(({ from }) => from === "provider")).toHaveLength(1);
    expect(answers.filter(({ from }) => from === "shared")).toHaveLength(39);
    expect(google.searches).toHaveLength(1);
  });

  test("share the failure of the flight that they waited for, and later ones call the provider again", async () => {
    const [one, other] = await openAll();
    const both = [one.search(), other.search()];
    await untilShared(one);
    google.answer(0, refused);
    for (const answer of await Promise.all(both)) {
      expect(answer).toMatchObject({ ok: false, code: "engine_error", details: { reason: "provider_refused" } });
    }
    expect(google.searches).toHaveLength(1);
    google.otherwise = answerOf();
    expect(await other.search()).toMatchObject({ ok: true, from: "provider" });
  });

  test("do not share a failure for lack of time: one that waited takes over", async () => {
    const [one, other] = await openAll();
    const short = one.search({}, { remainingMs: 10_000 });
    await google.hasSearches(1);
    const long = other.search();
    await untilShared(one);
    google.answer(0, outOfTime);
    expect(await short).toMatchObject({ ok: false, code: "engine_timeout" });
    await google.hasSearches(2);
    google.answer(1, answerOf());
    expect(await long).toMatchObject({ ok: true, from: "provider" });
  });

  test("end at their own deadline, however long the flight takes that they wait for", async () => {
    const [one, other] = await openAll();
    const first = one.search();
    await google.hasSearches(1);
    expect(await other.search({}, { remainingMs: 50 })).toMatchObject({ code: "engine_timeout" });
    google.answer(0, answerOf());
    expect(await first).toMatchObject({ ok: true });
    expect(google.searches).toHaveLength(1);
  });
});

describe("equal searches of one worker", () => {
  let worker: Worker;
  beforeEach(async () => {
    worker = await openEngine();
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

  test("the call for an announced overview has to be paid like that for a page", async () => {
    const { search } = await openWorkerEngine(googleOver(announcingOverviews()), { REDIS_URL: redisServer.url });
    expect(await search()).toMatchObject({ ok: true, payable: { calls: 2 } });
  });

  test("a small organization's search gets its own turn at the provider, also if a large one waits with the same query", async () => {
    const { provider, calls } = openOneSlot();
    const engine = googleOver(provider);
    const one = await openWorkerEngine(engine, { REDIS_URL: redisServer.url });
    const large = Array.from({ length: 10 }, (_, at) => one.search({ keyword: `k${at}` }, claim("large", at + 1)));
    await eventually(async () => engine.callsWaiting() === 9);
    const caller = new AbortController();
    const gone = one.search({ keyword: "k8" }, { ...claim("gone", 1), disconnected: caller.signal });
    caller.abort();
    expect(await gone).toMatchObject({ ok: false });
    const small = one.search({ keyword: "k9" }, claim("small", 1));
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
});

describe("equal searches of several workers", () => {
  test("share an answer that came after they were enqueued, and never an older one", async () => {
    const [one, other] = await openTwo();
    const enqueuedAtMs = one.clock.nowMs();
    const both = [one.search(), other.search()];
    await oneFlight(one);
    google.answer(0, answerOf("first"));
    await Promise.all(both);
    await hasField(one, "answer");
    expect(await other.search({}, { enqueuedAtMs })).toMatchObject({ from: "shared" });
    google.otherwise = answerOf("second");
    expect(await other.search()).toMatchObject({ from: "provider", results: [{ title: "second" }] });
  });

  test("do not share an answer from before they were enqueued with a search of their worker that may", async () => {
    const [one, other] = await openTwo();
    const enqueuedAtMs = one.clock.nowMs();
    const both = [one.search(), other.search()];
    await oneFlight(one);
    google.answer(0, answerOf("old"));
    await Promise.all(both);
    await hasField(one, "answer");
    google.otherwise = answerOf("new");
    const later = other.clock.nowMs() + 60_000;
    expect(await Promise.all([enqueuedAtMs, later].map((at) => other.search({}, { enqueuedAtMs: at })))).toMatchObject([
      { from: "shared", results: [{ title: "old" }] },
      { from: "provider", results: [{ title: "new" }] },
    ]);
  });

  test("are searched again after a defect of the engine, which one of them met", async () => {
    const defective = { search: () => Promise.reject(new Error("a defect")) };
    const one = await openWorkerEngine(defective, { REDIS_URL: redisServer.url });
    await expect(one.search()).rejects.toThrow("a defect");
    google.otherwise = answerOf();
    expect(await (await openEngine()).search()).toMatchObject({ ok: true, from: "provider" });
  });

  test("take over the flight of a search whose caller disconnects", async () => {
    const [one, other] = await openTwo();
    const caller = new AbortController();
    const began = one.search({}, { disconnected: caller.signal });
    await google.hasSearches(1);
    const waiting = other.search();
    await oneFlight(one);
    caller.abort();
    await google.hasSearches(2);
    expect(google.isDisconnected(0)).toBe(true);
    google.answer(1, answerOf("taken over"));
    expect(await waiting).toMatchObject({ ok: true, results: [{ title: "taken over" }], from: "provider" });
    google.answer(0, answerOf("disconnected"));
    await began;
  });

  test("take the turn of the smallest organization at the holder's provider, whichever worker its search waits in", async () => {
    const { provider, calls } = openOneSlot();
    const engine = googleOver(provider);
    const holder = await openWorkerEngine(engine, { REDIS_URL: redisServer.url });
    const keywords = ["running", "k1", "k2", "k3"];
    const large = keywords.map((keyword, at) => holder.search({ keyword }, claim("large", at + 1)));
    await eventually(async () => engine.callsWaiting() === 3);
    const leaseOf = (keyword: string) => `lease:${queryFingerprint(searchedPart(query({ keyword })))}`;
    const renewed = async (keyword: string) => {
      await holder.redis.pexpire(leaseOf(keyword), 1_500);
      await eventually(async () => (await holder.redis.pttl(leaseOf(keyword))) > 1_500);
    };
    const waits = (keyword: string) =>
      eventually(async () => (await holder.redis.hexists(leaseOf(keyword), "openSearches")) === 1);
    const [one, other] = await openTwo();

    const caller = new AbortController();
    const gone = one.search({ keyword: "k2" }, { ...claim("gone", 1), disconnected: caller.signal });
    await waits("k2");
    await renewed("k2");
    caller.abort();
    await gone;
    // With the first of them the holder may still find the claim of the search that has gone.
    for (let renewals = 0; renewals < 2; renewals += 1) await renewed("k2");

    const waiting = [
      one.search({ keyword: "k3" }, claim("huge", 50)),
      other.search({ keyword: "k3" }, claim("small", 1)),
    ];
    await eventually(async () => (await holder.redis.hget(leaseOf("k3"), "organizationId")) === "small");
    await renewed("k3");
    for (const ended of keywords.keys()) {
      await eventually(async () => calls.length > ended);
      calls[ended]?.end();
    }
    expect(calls.map(({ keyword }) => keyword)).toEqual(["running", "k3", "k1", "k2"]);
    expect(await Promise.all([...large, ...waiting])).toMatchObject(Array.from({ length: 6 }, () => ({ ok: true })));
  });

  test("end at once when their own caller disconnects, and the flight goes on", async () => {
    const [one, other] = await openTwo();
    const began = one.search();
    await google.hasSearches(1);
    const caller = new AbortController();
    const waiting = other.search({}, { disconnected: caller.signal });
    await oneFlight(one);
    caller.abort();
    expect(await waiting).toMatchObject({ ok: false });
    expect(google.isDisconnected(0)).toBe(false);
    google.answer(0, answerOf());
    expect(await began).toMatchObject({ ok: true });
    expect(google.searches).toHaveLength(1);
  });
});

describe("if a worker or Redis fails", () => {
  test("the lease of a worker that disconnects expires within 2 s, and a waiting worker takes over", async () => {
    const [dead, alive] = await openTwo();
    void dead.search();
    await google.hasSearches(1);
    dead.redis.disconnect();
    const waiting = alive.search();
    await oneFlight(alive);
    const key = await flightKey(alive);
    expect(await alive.redis.pttl(key)).toBeLessThanOrEqual(2_000);
    // The lease expires now, and not in two seconds.
    await alive.redis.pexpire(key, 1);
    await google.hasSearches(2);
    google.answer(1, answerOf());
    expect(await waiting).toMatchObject({ ok: true, from: "provider" });
  });

  test("a worker keeps its lease for as long as its search takes", async () => {
    const worker = await openEngine();
    const search = worker.search();
    await google.hasSearches(1);
    const key = await flightKey(worker);
    await worker.redis.pexpire(key, 1_500);
    await eventually(async () => (await worker.redis.pttl(key)) > 1_500);
    google.answer(0, answerOf());
    expect(await search).toMatchObject({ ok: true });
  });

  test("a search is answered without Redis", async () => {
    const worker = await openEngine();
    google.otherwise = answerOf();
    await redisServer.stop();
    expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
    redisServer = await freshRedis();
  });

  test("a record that is not a valid answer is ignored", async () => {
    const worker = await openEngine();
    const { redis } = worker;
    const search = worker.search();
    await google.hasSearches(1);
    const key = await flightKey(worker);
    google.answer(0, answerOf());
    await search;
    await eventually(async () => (await redis.exists(key)) === 0);
    google.otherwise = answerOf();
    for (const answer of ['{"ok":true}', "<html>"]) {
      await redis.hset(key, { answer, at: String(Date.now() + 1_000) });
      expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
    }
  });
});
