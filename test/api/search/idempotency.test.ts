import { afterAll, expect, test } from "vitest";
import { IdempotencyWaiters } from "../../../api/search/idempotency.ts";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const { redis } = await openFreshRedis(afterAll);

const record = keysOf("org_1").record("k");

test("a repeat waits for the first request for as long as it has time, also if another one has less", async () => {
  await redis.hset(record, { request: "req_1", fingerprint: "q" });
  const waiters = new IdempotencyWaiters(redis);
  void waiters.ended("org_1", "k", performance.now());
  const longer = waiters.ended("org_1", "k", performance.now() + 60_000);
  // By then the first one's time is over.
  await eventually(async () => (await redis.info("commandstats")).includes("cmdstat_hmget"));
  await redis.hset(record, "answered", "1");
  expect(await longer).toEqual({ outcome: "answered", requestId: "req_1" });
});

test("a repeat stops waiting when its time is over", async () => {
  await redis.hset(keysOf("org_2").record("k"), { request: "req_2", fingerprint: "q" });
  const state = await new IdempotencyWaiters(redis).ended("org_2", "k", performance.now());
  expect(state).toEqual({ outcome: "running", requestId: "req_2" });
});
