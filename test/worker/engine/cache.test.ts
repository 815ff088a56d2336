import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LocalServer } from "../../../local/local-server.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { answerOf, FakeGoogle, openWorkerEngine, refused } from "../../harness/processes/worker-engine.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

let redisServer: LocalServer;
let google: FakeGoogle;

beforeEach(async () => {
  redisServer = await freshRedis();
  google = new FakeGoogle();
});
afterEach(() => redisServer.stop());

const openEngine = () => openWorkerEngine(google, { REDIS_URL: redisServer.url, SEARCH_CACHE_SECONDS: "60" });

const isCached = (redis: Awaited<ReturnType<typeof openEngine>>["redis"]) =>
  eventually(async () => (await redis.hexists((await redis.keys("lease:*"))[0] ?? "", "answer")) === 1);

describe("SEARCH_CACHE_SECONDS", () => {
  test("answers later searches from the cache of any worker for that long", async () => {
    const [one, other] = await Promise.all([openEngine(), openEngine()]);
    const first = await one.search();
    await isCached(one.redis);
    const later = await other.search();
    expect(later).toMatchObject({ from: "cache", trace: { provider: "fake", calls: [], costMicroUsd: 0 } });
    expect(later.ok && first.ok && later.results).toEqual(first.ok && first.results);
    expect(await other.metric('provider_cost_saved_micro_usd_total{from="cache"}')).toBe(1_000);
    expect(google.searches).toHaveLength(1);
    expect(await one.redis.pttl((await one.redis.keys("lease:*"))[0] ?? "")).toBeGreaterThan(50_000);

    const inAMinute = { enqueuedAtMs: other.clock.nowMs() + 61_000 };
    expect(await other.search({}, inAMinute)).toMatchObject({ from: "provider" });
  });

  test("does not cache failures", async () => {
    const worker = await openEngine();
    google.otherwise = refused;
    expect(await worker.search()).toMatchObject({ ok: false });
    google.otherwise = answerOf();
    expect(await worker.search()).toMatchObject({ ok: true, from: "provider" });
  });

  test("caches nothing above 60 % of maxmemory, because holds and jobs need the rest", async () => {
    const worker = await openEngine();
    const used = Number(/^used_memory:(\d+)/m.exec(await worker.redis.info("memory"))?.[1]);
    await worker.redis.config("SET", "maxmemory", String(Math.round(used * 1.5)));
    await worker.search();
    await eventually(async () => (await worker.redis.keys("lease:*")).length === 0);
    expect(await worker.search()).toMatchObject({ from: "provider" });
  });
});
