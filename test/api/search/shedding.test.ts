import { afterAll, beforeEach, expect, test } from "vitest";
import { openOrganizationsKey } from "../../../shared/credits/redis-keys.ts";
import { readBacklog, readOldestWaitMs } from "../../../shared/queue/backlog.ts";
import { withinShareMax } from "../../../shared/queue/turns.ts";
import { queueKeys, scorePerTurn } from "../../../shared/queue/search-queue.ts";
import { removeHeartbeat, type WorkerCapacity, writeHeartbeat } from "../../../shared/queue/worker-heartbeats.ts";
import { openShedding, Shedding } from "../../../api/search/shedding.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { Clock } from "../../../shared/redis/clock.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

/** Load shedding against a queue that is filled by the test and has no worker. */

const { redis } = await openFreshRedis(afterAll);
beforeEach(() => redis.flushall());

const never = new AbortController().signal;
const serving = { draining: never, stopping: never };
const remainingMs = 1_000;
// Two slots, 100 ms per search: a search starts every 50 ms.
const fastWorkforce = { workers: 1, slots: 2, ratePerMs: 2 / 100 };
// Fills both slots and a wait of 500 ms.
const admittedMax = 2 + 500 / 50;

type Workforce = Pick<WorkerCapacity, "workers" | "slots" | "ratePerMs"> & Partial<WorkerCapacity>;

function sheddingWith(workforce: Workforce): Shedding {
  const shedding = new Shedding({ redis, clock: new Clock(), ...serving });
  shedding.updateCapacity({ slotsCeiling: workforce.slots, providers: undefined, reachesPostgres: true, ...workforce });
  return shedding;
}

/** Admits searches until one is refused, before the queue can be read again. @returns the number of admitted searches. */
function admitAll(shedding: Shedding, timeoutMs = remainingMs): number {
  for (let admitted = 0; admitted < 100_000; admitted += 1) {
    if (shedding.refusal(timeoutMs)) return admitted;
    shedding.countAdmitted();
  }
  throw new Error("no search was refused");
}

const enqueue = (jobs: number) => redis.lpush(queueKeys.waiting, ...Array.from({ length: jobs }, (_, n) => `req_${n}`));

const openOrganizations = (count: number) =>
  redis.sadd(openOrganizationsKey, ...Array.from({ length: count }, (_, n) => `org_${n}`));

test("searches are admitted until their wait would be half of their remaining time", () => {
  expect(admitAll(sheddingWith(fastWorkforce))).toBe(admittedMax);
});

test("searches of other APIs and searches that run count too", async () => {
  await enqueue(5);
  await redis.lpush(queueKeys.running, "req_a", "req_b");
  const shedding = sheddingWith(fastWorkforce);
  await shedding.refresh();
  expect(admitAll(shedding)).toBe(admittedMax - 7);
});

test("a search that was admitted before the backlog was read is not counted twice", async () => {
  const shedding = sheddingWith(fastWorkforce);
  await enqueue(admitAll(shedding));
  await shedding.refresh();
  expect(shedding.refusal(remainingMs)).toBeDefined();
  await redis.del(queueKeys.waiting);
  await shedding.refresh();
  expect(admitAll(shedding)).toBe(admittedMax);
});

test("the backlog is read again while searches arrive", async () => {
  const shedding = sheddingWith(fastWorkforce);
  await enqueue(50);
  await expect.poll(() => shedding.refusal(remainingMs)).toBeDefined();
  await redis.flushall();
  await expect.poll(() => shedding.refusal(remainingMs)).toBeUndefined();
});

const reportWorker = () => {
  const own = { concurrency: 64, slotsCeiling: 64, runMs: 500, reachesPostgres: true, atMs: Date.now() };
  return writeHeartbeat(redis, "worker", own);
};

test("the slots that a worker has raised are used while searches arrive", async () => {
  const shedding = sheddingWith({ workers: 1, slots: 1, ratePerMs: 1 / 10_000 });
  shedding.countAdmitted();
  expect(shedding.refusal(remainingMs)).toBeDefined();
  await reportWorker();
  await expect.poll(() => shedding.refusal(remainingMs)).toBeUndefined();
});

test("a thousand searches at once are admitted if an idle worker can raise its slots for them", () => {
  const idle = { workers: 1, slots: 32, ratePerMs: 32 / 1_000 };
  const mayWaitMs = 15_000;
  expect(admitAll(sheddingWith(idle), 2 * mayWaitMs)).toBe(32 + mayWaitMs * idle.ratePerMs);
  // Five times the slots double, in 250 ms each. Then a search starts every millisecond.
  const admitted = 1_000 + mayWaitMs - 5 * 250;
  expect(admitAll(sheddingWith({ ...idle, slotsCeiling: 1_000 }), 2 * mayWaitMs)).toBe(admitted);
});

test("slots that a worker can raise only later than a search may wait do not count", () => {
  // Half of a second is enough for 8 slots. A ninth search would wait for 16 slots, or until one of 8 ends.
  const workforce = { workers: 1, slots: 2, slotsCeiling: 1_000, ratePerMs: 2 / 400 };
  expect(admitAll(sheddingWith(workforce))).toBe(8);
});

test("a search is admitted while a slot is free, however long searches take", () => {
  expect(admitAll(sheddingWith({ workers: 2, slots: 64, ratePerMs: 64 / 30_000 }))).toBe(64);
});

test("a search is admitted while no worker has reached Postgres for a moment, as in a failover", () => {
  const capacity = { ...fastWorkforce, slotsCeiling: 2, providers: undefined };
  const shedding = sheddingWith(capacity);
  shedding.updateCapacity({ ...capacity, reachesPostgres: false });
  expect(shedding.refusal(remainingMs)).toBeUndefined();
});

test("a search that could be started but not answered in time is refused", () => {
  // A search starts every 90 ms: the twelfth would start after 180 ms and end 80 ms after its deadline.
  expect(admitAll(sheddingWith({ workers: 1, slots: 10, ratePerMs: 10 / 900 }))).toBe(11);
});

test("the refusal says when the queue will be short enough, at least a second", () => {
  const shedding = sheddingWith({ workers: 1, slots: 1, ratePerMs: 1 / 400 });
  for (let admitted = 0; admitted < 10; admitted += 1) shedding.countAdmitted();
  // The wait is 10 × 400 ms; a search may wait for half of its remaining time.
  expect(shedding.refusal(remainingMs)?.error.details).toEqual({
    reason: "queue_too_long",
    retryAfterMs: 4_000 - remainingMs / 2,
  });
  expect(shedding.refusal(6_500)?.error.details).toEqual({ reason: "queue_too_long", retryAfterMs: 1_000 });
});

test("an organization is refused for its own searches and not for those of others", async () => {
  // A search starts every 100 ms and takes 3.2 s. With four organizations each has 8 slots, and a round takes 400 ms.
  const shedding = sheddingWith({ workers: 1, slots: 32, ratePerMs: 1 / 100 });
  await enqueue(500);
  await openOrganizations(4);
  await shedding.refresh();
  expect(shedding.refusal(3_000)).toMatchObject({ openMax: 8, error: { details: { reason: "queue_too_long" } } });
  // It may wait for 16 s.
  expect(shedding.refusal(32_000)).toMatchObject({ openMax: 8 + 40 });
  const turns = [8, 9, 10].map((openSearches) => shedding.turnOf({ openSearches, organizations: 4 }));
  expect(turns).toEqual([7, withinShareMax + 1, withinShareMax + 2]);
});

test("where more organizations than slots have open searches, also the first of each is refused in time", async () => {
  const shedding = sheddingWith(fastWorkforce);
  await enqueue(200);
  await openOrganizations(100);
  await shedding.refresh();
  expect(shedding.refusal(remainingMs)).toMatchObject({ openMax: 0 });
});

test("searches with a turn count in the queue, and turns beyond shares go on from the one that has come", async () => {
  const turn = withinShareMax + 7;
  await redis.zadd(queueKeys.waitingByTurn, 4 * scorePerTurn + 1, "req_b", turn * scorePerTurn + 2, "req_a");
  await enqueue(1);
  expect(await readBacklog(redis)).toEqual({ waiting: 3, running: 0, turn });
  const nowMs = Date.now();
  // A worker may have listed it before an organization's only search, which is older.
  await redis.rpush(queueKeys.waiting, "req_c");
  for (const id of ["req_0", "req_b", "req_c"]) await redis.hset(queueKeys.job(id), "timestamp", nowMs);
  await redis.hset(queueKeys.job("req_0"), "timestamp", nowMs - 1_000);
  expect(await readOldestWaitMs(redis, nowMs)).toBe(1_000);
  await redis.del(queueKeys.waiting);
  await redis.hset(queueKeys.job("req_a"), "timestamp", nowMs - 500);
  expect(await readOldestWaitMs(redis, nowMs)).toBe(500);
  const shedding = sheddingWith(fastWorkforce);
  await shedding.refresh();
  expect(shedding.turnOf({ openSearches: 3, organizations: 1 })).toBe(turn + 1);
});

test("an API that is asked to stop refuses a search as soon as the last worker leaves, and one that serves does not", async () => {
  const shutdown = new Shutdown();
  const [draining, stopping] = [new AbortController(), new AbortController()];
  const parts = { redis, clock: new Clock(), log: openLog({ name: "test", level: "silent" }), shutdown };
  const open = (signal: AbortSignal) =>
    openShedding({ ...parts, metrics: openMetrics(), draining: signal, stopping: stopping.signal });
  await reportWorker();
  const [asked, spared] = [open(draining.signal), open(never)];
  await expect.poll(() => asked.refusal(remainingMs) ?? spared.refusal(remainingMs)).toBeUndefined();
  draining.abort();
  expect(asked.refusal(remainingMs)).toBeUndefined();
  await removeHeartbeat(redis, "worker");
  await expect
    .poll(() => asked.refusal(remainingMs)?.error.details)
    .toEqual({ reason: "no_workers", retryAfterMs: 1_000 });
  await spared.refresh();
  expect(spared.refusal(remainingMs)).toBeUndefined();
  stopping.abort();
  await shutdown.run(parts.log);
});
