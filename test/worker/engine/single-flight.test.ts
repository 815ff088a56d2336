import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { releaseWithoutResult, acquireLease, releaseLease } from "../../../worker/engine/flight-leases.ts";
import { refusal, type Reply, type SerperStub, startSerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";
import { freshRedis } from "../../harness/servers/servers.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { openWorkerEngine } from "../../harness/processes/worker-engine.ts";

let redisServer: LocalServer;
let stub: SerperStub;

beforeEach(async () => {
  [redisServer, stub] = await Promise.all([freshRedis(), startSerperStub()]);
});
afterEach(() => Promise.all([redisServer.stop(), stub.close()]));

const openEngine = () => openWorkerEngine({ REDIS_URL: redisServer.url, SERPER_BASE_URL: stub.url });

/** A provider that takes requests and answers them when told to. */
function answering(reply: Reply): { answer: () => void } {
  const waiting: (() => void)[] = [];
  let isOpen = false;
  stub.otherwise = (request, response) => {
    if (isOpen) reply(request, response);
    else waiting.push(() => reply(request, response));
  };
  return {
    answer: () => {
      isOpen = true;
      for (const go of waiting.splice(0)) go();
    },
  };
}

const asked = () => eventually(async () => stub.requests.length > 0);
/** Whether another worker waits for what is being asked. */
const awaited = async (redis: {
  keys: (pattern: string) => Promise<string[]>;
  hget: (key: string, field: string) => Promise<string | null>;
}) => eventually(async () => (await redis.hget((await redis.keys("asked:*"))[0] ?? "", "awaited")) === "1");

describe("equal searches of one moment", () => {
  test("ask the provider once, whichever worker has them, and all have the same results", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const provider = answering(tenOrganic);
    const searches = Array.from({ length: 50 }, () => [one.search(), other.search()]).flat();
    await asked();
    await awaited(one.redis);
    provider.answer();
    const answers = await Promise.all(searches);
    expect(stub.requests).toHaveLength(1);
    expect(new Set(answers.map((answer) => answer.ok && JSON.stringify(answer.results))).size).toBe(1);
    expect(answers.every((answer) => answer.ok && answer.results.length === 10)).toBe(true);
    expect(answers.filter(({ from }) => from === "provider")).toHaveLength(1);
    expect(answers.filter(({ from }) => from === "shared")).toHaveLength(99);
  });

  test("cost once, and what the others saved is counted", async () => {
    const worker = await openEngine();
    const answers = await Promise.all([1, 2, 3].map(() => worker.search()));
    expect(answers.map(({ trace }) => trace.costMicroUsd)).toEqual([1_000, 0, 0]);
    expect(answers.map(({ trace }) => trace.provider)).toEqual(["serper", "serper", "serper"]);
    expect(await worker.metric('searches_asked_total{from="shared"}')).toBe(2);
    expect(await worker.metric('provider_cost_saved_micro_usd_total{from="shared"}')).toBe(2_000);
  });

  test("share an answer that came while they waited in the queue, and never one from before they were sent", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const sentAtMs = one.clock.nowMs();
    const provider = answering(tenOrganic);
    const both = [one.search(), other.search()];
    await asked();
    await awaited(one.redis);
    provider.answer();
    await Promise.all(both);
    await eventually(async () => (await one.redis.hexists((await one.redis.keys("asked:*"))[0] ?? "", "answer")) === 1);
    expect(await other.search({}, { enqueuedAtMs: sentAtMs })).toMatchObject({ from: "shared" });
    expect(stub.requests).toHaveLength(1);
    expect(await other.search()).toMatchObject({ from: "provider" });
    expect(stub.requests).toHaveLength(2);
  });

  test("are equal whatever their target domain, and in nothing else", async () => {
    const worker = await openEngine();
    await Promise.all([worker.search(), worker.search({ targetDomain: "pumps.example" })]);
    expect(stub.requests).toHaveLength(1);
    await Promise.all([worker.search(), worker.search({ depth: 11 }), worker.search({ language: "German" })]);
    expect(stub.requests.map(({ body }) => [body["hl"], body["page"]])).toHaveLength(5);
  });

  test("share the failure of the one who asked, and later ones ask anew", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const provider = answering(refusal(403, "Unauthorized."));
    const both = [one.search(), other.search()];
    await asked();
    await awaited(one.redis);
    provider.answer();
    for (const answer of await Promise.all(both)) {
      expect(answer).toMatchObject({ ok: false, code: "engine_error", details: { reason: "provider_refused" } });
    }
    expect(stub.requests).toHaveLength(1);
    stub.otherwise = tenOrganic;
    expect(await other.search()).toMatchObject({ ok: true, from: "provider" });
  });

  test("go on with another one asking, where the first one's time is over before theirs", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const provider = answering(tenOrganic);
    const short = one.search({}, { remainingMs: 1_000 });
    await asked();
    const long = [one.search(), other.search()];
    await awaited(one.redis);
    expect(await short).toMatchObject({ ok: false, code: "engine_timeout" });
    await eventually(async () => stub.requests.length === 2);
    provider.answer();
    expect(await Promise.all(long)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(stub.requests).toHaveLength(2);
  });

  test("are not told a failure that came of another one's lack of time, and ask anew", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const oops = refusal(500, "Oops");
    stub.next.push((request, response) => void setTimeout(() => oops(request, response), 900));
    const short = one.search({}, { remainingMs: 1_000 });
    await asked();
    const long = [one.search(), other.search()];
    expect(await short).toMatchObject({ ok: false });
    expect(await Promise.all(long)).toMatchObject([{ ok: true }, { ok: true }]);
  });

  test("are told what comes of the next asker, however soon after an abandoned one", async () => {
    const { redis } = await openEngine();
    const fingerprint = "pumps";
    const claimAs = (token: string) => acquireLease(redis, fingerprint, { token, sinceMs: 0, timeoutMs: 1_000 });
    expect(await claimAs("first")).toEqual({ kind: "acquired" });
    expect(await claimAs("waits")).toEqual({ kind: "held", holder: "first" });
    await releaseWithoutResult(redis, fingerprint);
    expect(await claimAs("next")).toEqual({ kind: "acquired" });
    expect(await releaseLease(redis, fingerprint, "next")).toBe("awaited");
  });

  test("end at their own deadline, however long the one who asked may wait", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const provider = answering(tenOrganic);
    const asking = one.search();
    await asked();
    const short = [one.search({}, { remainingMs: 150 }), other.search({}, { remainingMs: 150 })];
    expect(await Promise.all(short)).toMatchObject([{ code: "engine_timeout" }, { code: "engine_timeout" }]);
    provider.answer();
    expect(await asking).toMatchObject({ ok: true });
    expect(stub.requests).toHaveLength(1);
  });
});

describe("without a Redis that keeps claims", () => {
  test("an asker that went away loses its claim within seconds, and one of those who wait asks", async () => {
    const [dead, alive] = await Promise.all([openEngine(), openEngine()]);
    const provider = answering(tenOrganic);
    void dead.search();
    await asked();
    dead.redis.disconnect();
    const waiting = alive.search();
    await eventually(async () => stub.requests.length === 2);
    provider.answer();
    expect(await waiting).toMatchObject({ ok: true, from: "provider" });
  });

  test("a search is answered all the same", async () => {
    const worker = await openEngine();
    await redisServer.stop();
    expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
    redisServer = await freshRedis();
  });

  test("what is no answer of ours counts as none", async () => {
    const worker = await openEngine();
    const provider = answering(tenOrganic);
    const first = worker.search();
    await asked();
    const [key = ""] = await worker.redis.keys("asked:*");
    provider.answer();
    await first;
    for (const answer of ['{"ok":true}', "<html>"]) {
      await worker.redis.hset(key, { answer, at: "9999999999999" });
      expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
    }
  });
});
