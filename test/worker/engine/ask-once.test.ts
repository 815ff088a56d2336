import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openContext } from "../../../shared/context.ts";
import type { LocalServer } from "../../../shared/local/server.ts";
import { openLog } from "../../../shared/log.ts";
import { openAskOnce, type Engine } from "../../../worker/engine/ask-once.ts";
import { abandon, claim, defineClaimScripts, unclaim } from "../../../worker/engine/claims.ts";
import { createGoogle } from "../../../worker/engine/google.ts";
import { hasRoomForAnswers } from "../../../worker/engine/room-in-redis.ts";
import { engineConfig, query } from "../../harness/queries.ts";
import { refusal, type Reply, type SerperStub, startSerperStub, tenOrganic } from "../../harness/serper-stub.ts";
import { freshRedis } from "../../harness/servers.ts";
import { until } from "../../harness/until.ts";

const remainingMs = 10_000;
const log = openLog({ name: "test", level: "silent" });

let redisServer: LocalServer;
let stub: SerperStub;

beforeEach(async () => {
  [redisServer, stub] = await Promise.all([freshRedis(), startSerperStub()]);
});
afterEach(() => Promise.all([redisServer.stop(), stub.close()]));

/** What one worker has of the engine, with connections of its own. */
async function openWorkersEngine(settings: Record<string, string> = {}) {
  const config = engineConfig({
    REDIS_URL: redisServer.url,
    SERP_PROVIDERS: "serper",
    SERPER_API_KEY: "secret",
    SERPER_BASE_URL: stub.url,
    ...settings,
  });
  const context = openContext({ config, name: "worker", databaseSizeMax: 1, log });
  const google = createGoogle(context);
  context.closing.push("google", () => google.close());
  onTestFinished(() => context.closing.run(log));
  defineClaimScripts(context.redis);
  await until(async () => context.redis.status === "ready");
  await context.clock.read(context.redis);
  const engine = openAskOnce(context, google);
  const search = (fields: object = {}, options: Partial<Parameters<Engine["search"]>[0]> = {}) =>
    engine.search({ query: query(fields), remainingMs, enqueuedAtMs: context.clock.nowMs(), ...options });
  const metric = async (series: string) => {
    const line = (await context.metrics.registry.metrics()).split("\n").find((told) => told.startsWith(`${series} `));
    return Number(line?.split(" ").at(-1));
  };
  return { ...context, search, metric };
}

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

const asked = () => until(async () => stub.requests.length > 0);
/** Whether another worker waits for what is being asked. */
const awaited = async (redis: {
  keys: (pattern: string) => Promise<string[]>;
  hget: (key: string, field: string) => Promise<string | null>;
}) => until(async () => (await redis.hget((await redis.keys("asked:*"))[0] ?? "", "awaited")) === "1");

describe("equal searches of one moment", () => {
  test("ask the provider once, whichever worker has them, and all have the same results", async () => {
    const [one, other] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
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
    const worker = await openWorkersEngine();
    const answers = await Promise.all([1, 2, 3].map(() => worker.search()));
    expect(answers.map(({ trace }) => trace.costMicroUsd)).toEqual([1_000, 0, 0]);
    expect(answers.map(({ trace }) => trace.provider)).toEqual(["serper", "serper", "serper"]);
    expect(await worker.metric('searches_asked_total{from="shared"}')).toBe(2);
    expect(await worker.metric('provider_cost_saved_micro_usd_total{from="shared"}')).toBe(2_000);
  });

  test("share an answer that came while they waited in the queue, and never one from before they were sent", async () => {
    const [one, other] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
    const sentAtMs = one.clock.nowMs();
    const provider = answering(tenOrganic);
    const both = [one.search(), other.search()];
    await asked();
    await awaited(one.redis);
    provider.answer();
    await Promise.all(both);
    await until(async () => (await one.redis.hexists((await one.redis.keys("asked:*"))[0] ?? "", "answer")) === 1);
    expect(await other.search({}, { enqueuedAtMs: sentAtMs })).toMatchObject({ from: "shared" });
    expect(stub.requests).toHaveLength(1);
    expect(await other.search()).toMatchObject({ from: "provider" });
    expect(stub.requests).toHaveLength(2);
  });

  test("are equal whatever their target domain, and in nothing else", async () => {
    const worker = await openWorkersEngine();
    await Promise.all([worker.search(), worker.search({ targetDomain: "pumps.example" })]);
    expect(stub.requests).toHaveLength(1);
    await Promise.all([worker.search(), worker.search({ depth: 11 }), worker.search({ language: "German" })]);
    expect(stub.requests.map(({ body }) => [body["hl"], body["page"]])).toHaveLength(5);
  });

  test("share the failure of the one who asked, and later ones ask anew", async () => {
    const [one, other] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
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
    const [one, other] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
    const provider = answering(tenOrganic);
    const short = one.search({}, { remainingMs: 1_000 });
    await asked();
    const long = [one.search(), other.search()];
    await awaited(one.redis);
    expect(await short).toMatchObject({ ok: false, code: "engine_timeout" });
    await until(async () => stub.requests.length === 2);
    provider.answer();
    expect(await Promise.all(long)).toMatchObject([{ ok: true }, { ok: true }]);
    expect(stub.requests).toHaveLength(2);
  });

  test("are told what comes of the next asker, however soon after an abandoned one", async () => {
    const { redis } = await openWorkersEngine();
    const fingerprint = "pumps";
    expect(await claim(redis, fingerprint, { token: "first", sinceMs: 0 })).toEqual({ kind: "yours" });
    expect(await claim(redis, fingerprint, { token: "waits", sinceMs: 0 })).toEqual({ kind: "asked", by: "first" });
    await abandon(redis, fingerprint);
    expect(await claim(redis, fingerprint, { token: "next", sinceMs: 0 })).toEqual({ kind: "yours" });
    expect(await unclaim(redis, fingerprint, "next")).toBe(true);
  });

  test("end at their own deadline, however long the one who asked may wait", async () => {
    const [one, other] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
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
    const [dead, alive] = await Promise.all([openWorkersEngine(), openWorkersEngine()]);
    const provider = answering(tenOrganic);
    void dead.search();
    await asked();
    dead.redis.disconnect();
    const waiting = alive.search();
    await until(async () => stub.requests.length === 2);
    provider.answer();
    expect(await waiting).toMatchObject({ ok: true, from: "provider" });
  });

  test("a search is answered all the same", async () => {
    const worker = await openWorkersEngine();
    await redisServer.stop();
    expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
    redisServer = await freshRedis();
  });

  test("what is no answer of ours counts as none", async () => {
    const worker = await openWorkersEngine();
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

describe("SEARCH_CACHE_SECONDS", () => {
  const kept = { SEARCH_CACHE_SECONDS: "60" };
  const isKept = (redis: Awaited<ReturnType<typeof openWorkersEngine>>["redis"]) =>
    until(async () => (await redis.hexists((await redis.keys("asked:*"))[0] ?? "", "answer")) === 1);

  test("lets later searches have the answer for so long, in every worker", async () => {
    const [one, other] = await Promise.all([openWorkersEngine(kept), openWorkersEngine(kept)]);
    const first = await one.search();
    await isKept(one.redis);
    const later = await other.search();
    expect(later).toMatchObject({ from: "cache", trace: { provider: "serper", calls: [], costMicroUsd: 0 } });
    expect(later.ok && first.ok && later.results).toEqual(first.ok && first.results);
    expect(await other.metric('provider_cost_saved_micro_usd_total{from="cache"}')).toBe(1_000);
    expect(stub.requests).toHaveLength(1);
    expect(await one.redis.pttl((await one.redis.keys("asked:*"))[0] ?? "")).toBeGreaterThan(50_000);

    const inAMinute = { enqueuedAtMs: other.clock.nowMs() + 61_000 };
    expect(await other.search({}, inAMinute)).toMatchObject({ from: "provider" });
  });

  test("keeps no failure", async () => {
    const worker = await openWorkersEngine(kept);
    stub.otherwise = refusal(403, "Unauthorized.");
    expect(await worker.search()).toMatchObject({ ok: false });
    stub.otherwise = tenOrganic;
    expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
  });

  test("keeps nothing where Redis is more than half full, since holds and jobs need the room", async () => {
    const worker = await openWorkersEngine(kept);
    expect(await hasRoomForAnswers(worker.redis)).toBe(true);
    await worker.redis.config("SET", "maxmemory", "1gb");
    expect(await hasRoomForAnswers(worker.redis)).toBe(true);
    const used = Number(/^used_memory:(\d+)/m.exec(await worker.redis.info("memory"))?.[1]);
    await worker.redis.config("SET", "maxmemory", String(Math.round(used * 1.5)));
    await worker.search();
    await until(async () => (await worker.redis.keys("asked:*")).length === 0);
    expect(await worker.search()).toMatchObject({ from: "provider" });
  });
});
