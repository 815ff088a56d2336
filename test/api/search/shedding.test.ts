import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { queueKeys } from "../../../shared/queue/search-queue.ts";
import { Shedding } from "../../../api/search/shedding.ts";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

/** What is refused because it could not be answered in time, with a queue that is only filled and never worked on. */

let server: LocalServer;
let redis: Redis;
beforeAll(async () => {
  server = await freshRedis();
  redis = new Redis(server.url);
});
beforeEach(() => redis.flushall());
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const never = new AbortController().signal;
const leftMs = 1_000;
// Two at once, 100 ms each: one is started every 50 ms.
const brisk = { workers: 1, slots: 2, ratePerMs: 2 / 100 };
// What fills two places and a wait of 500 ms.
const takenByBrisk = 2 + 500 / 50;

function sheddingWith(workforce: typeof brisk): Shedding {
  const shedding = new Shedding(redis, never);
  shedding.updateCapacity(workforce);
  return shedding;
}

/** Takes searches until one is refused, all before the queue can be read again. */
function takeAll(shedding: Shedding): number {
  for (let taken = 0; taken < 1_000; taken += 1) {
    if (shedding.refusal(leftMs)) return taken;
    shedding.countAdmitted();
  }
  throw new Error("none is ever refused");
}

const enqueue = (jobs: number) => redis.lpush(queueKeys.waiting, ...Array.from({ length: jobs }, (_, n) => `req_${n}`));

test("searches are admitted until their wait would be half of their remaining time", () => {
  expect(takeAll(sheddingWith(brisk))).toBe(takenByBrisk);
});

test("searches of other APIs and searches that run count too", async () => {
  await enqueue(5);
  await redis.lpush(queueKeys.running, "req_a", "req_b");
  const shedding = sheddingWith(brisk);
  await shedding.refreshBacklog();
  expect(takeAll(shedding)).toBe(takenByBrisk - 7);
});

test("a search that was admitted before the backlog was read is not counted twice", async () => {
  const shedding = sheddingWith(brisk);
  await enqueue(takeAll(shedding));
  await shedding.refreshBacklog();
  expect(shedding.refusal(leftMs)).toBeDefined();
  await redis.del(queueKeys.waiting);
  await shedding.refreshBacklog();
  expect(takeAll(shedding)).toBe(takenByBrisk);
});

test("the backlog is read again while searches arrive", async () => {
  const shedding = sheddingWith(brisk);
  await enqueue(50);
  await expect.poll(() => shedding.refusal(leftMs)).toBeDefined();
  await redis.flushall();
  await expect.poll(() => shedding.refusal(leftMs)).toBeUndefined();
});

test("a search is admitted while a slot is free, however long searches take", () => {
  expect(takeAll(sheddingWith({ workers: 2, slots: 64, ratePerMs: 64 / 30_000 }))).toBe(64);
});

test("a search that could be started but not answered in time is refused", () => {
  // One starts every 90 ms: the twelfth would begin after 180 ms, and end 80 ms behind its deadline.
  expect(takeAll(sheddingWith({ workers: 1, slots: 10, ratePerMs: 10 / 900 }))).toBe(11);
});

test("the refusal says when the queue will be short enough, at least a second", () => {
  const shedding = sheddingWith({ workers: 1, slots: 1, ratePerMs: 1 / 400 });
  for (let taken = 0; taken < 10; taken += 1) shedding.countAdmitted();
  // Ten times 400 ms, of which half of the time it has may pass.
  expect(shedding.refusal(leftMs)?.details).toEqual({ reason: "queue_too_long", retryAfterMs: 4_000 - leftMs / 2 });
  expect(shedding.refusal(6_500)?.details).toEqual({ reason: "queue_too_long", retryAfterMs: 1_000 });
});
