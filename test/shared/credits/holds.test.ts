import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { admit } from "../../../shared/credits/admit.ts";
import { readIdempotencyState, readUsage, settleHolds } from "../../../shared/credits/holds.ts";
import {
  countOpenOrganizations,
  findOverdueHolds,
  listHoldsWithMils,
  readOpenHolds,
} from "../../../shared/credits/open-holds.ts";
import { holdIndexKey, keysOf } from "../../../shared/credits/redis-keys.ts";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { isLeft } from "../../../shared/credits/unpaid-calls.ts";
import { newId } from "../../../shared/ids.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { plan, request, seed } from "./hold-requests.ts";

/**
 * Holds in Redis with the records of their keys, beside what the money model compares. Which searches count as in flight: those
 * that run although their callers left, and how the sweeper finds all of them.
 */

const { redis } = await openFreshRedis(afterAll);

const seeded = (balanceMils: number) => seed(redis, balanceMils);

const heldOf = (organizationId: string) => redis.hget(keysOf(organizationId).holds, "held");
const available = async (organizationId: string) => (await readUsage(redis, { organizationId, plan })).availableMils;

test("a balance that arrives before its holds are dropped never shows less than 0 mils", async () => {
  const organizationId = await seeded(10);
  const both = [request(organizationId), request(organizationId)];
  for (const one of both) await admit(redis, one);
  await storeBalance(redis, organizationId, { balanceMils: 0, version: 3 });
  expect(await available(organizationId)).toBe(0);
  // A search whose key has paid already needs no mils, so it passes even now.
  const paid = request(organizationId, { priceMils: 0 });
  expect(await admit(redis, paid)).toMatchObject({ outcome: "held", remainingMils: 0 });
  await settleHolds(redis, organizationId, { balanceMils: 0, version: 3 }, [paid]);
  await settleHolds(redis, organizationId, { balanceMils: 0, version: 3 }, both);
  expect(await available(organizationId)).toBe(0);
});

test("a missing balance is cold, not zero, and a refusal leaves no hold, record or count", async () => {
  const organizationId = newId("org");
  expect(await admit(redis, request(organizationId))).toMatchObject({ outcome: "balance_missing" });
  expect(await redis.keys(`*${organizationId}*`)).toEqual([]);
  await storeBalance(redis, organizationId, { balanceMils: 4, version: 1 });
  expect(await admit(redis, request(organizationId))).toMatchObject({
    outcome: "insufficient_credit",
    availableMils: 4,
    version: 1,
  });
  expect(await redis.exists(keysOf(organizationId).window, keysOf(organizationId).holds)).toBe(0);
});

test("a rate window that would outlive its length, after the clock was set back, counts as over", async () => {
  const organizationId = await seeded(100);
  await redis.set(keysOf(organizationId).window, "1000", "PX", 3_600_000);
  expect(await admit(redis, request(organizationId))).toMatchObject({ outcome: "held", window: { used: 1 } });
});

test("every key in Redis but an organization's balance and holds expires", async () => {
  const organizationId = await seeded(100);
  await admit(redis, request(organizationId, { key: { hash: "k", fingerprint: "q" } }));
  for (const key of await redis.keys(`*${organizationId}*`)) {
    const livesOn = [keysOf(organizationId).balance, keysOf(organizationId).holds].includes(key);
    expect({ key, expires: (await redis.pttl(key)) > 0 }).toEqual({ key, expires: !livesOn });
  }
});

test("a key whose first request was answered refers its repeats to Postgres, and only that request ends it", async () => {
  const organizationId = await seeded(100);
  const key = { hash: "k", fingerprint: "q" };
  const owner = request(organizationId, { key });
  await admit(redis, owner);
  const repeat = () => admit(redis, request(organizationId, { key }));
  expect(await repeat()).toMatchObject({ outcome: "waiting" });
  const balance = { balanceMils: 95, version: 2 };
  await settleHolds(redis, organizationId, balance, [{ requestId: newId("req"), key, answered: true }]);
  expect(await repeat()).toMatchObject({ outcome: "waiting" });
  await settleHolds(redis, organizationId, balance, [{ requestId: owner.requestId, key, answered: true }]);
  expect(await readIdempotencyState(redis, organizationId, "k")).toMatchObject({ outcome: "answered" });
  expect(await repeat()).toMatchObject({ outcome: "completed" });
  expect(await admit(redis, request(organizationId, { key, hasStoredAnswer: true }))).toMatchObject({
    outcome: "stored_answer",
    window: { used: 3 },
  });
});

test("a failure frees the key for the next request, and is shared with the repeats that wait", async () => {
  const organizationId = await seeded(100);
  const key = { hash: "k", fingerprint: "q" };
  const owner = request(organizationId, { key });
  await admit(redis, owner);
  const balance = { balanceMils: 100, version: 2 };
  // The end of another search does not touch it.
  await settleHolds(redis, organizationId, balance, [{ requestId: newId("req"), key, failure: "theirs" }]);
  expect(await readIdempotencyState(redis, organizationId, "k")).toMatchObject({
    outcome: "running",
    requestId: owner.requestId,
  });
  await settleHolds(redis, organizationId, balance, [{ requestId: owner.requestId, key, failure: "mine" }]);
  expect(await readIdempotencyState(redis, organizationId, "k")).toEqual({ outcome: "failed", failure: "mine" });
  expect(await admit(redis, request(organizationId, { key: { ...key, fingerprint: "other" } }))).toMatchObject({
    outcome: "held",
  });
});

test("a Redis that is out of memory admits nothing and still ends holds, with the records of their keys", async () => {
  const organizationId = await seeded(100);
  const key = { hash: "k", fingerprint: "q" };
  const [answered, failed] = [request(organizationId, { key }), request(organizationId)];
  for (const one of [answered, failed]) expect(await admit(redis, one)).toMatchObject({ outcome: "held" });
  await redis.config("SET", "maxmemory", "1");
  try {
    await expect(admit(redis, request(organizationId))).rejects.toThrow(/^OOM/);
    const ends = [{ requestId: answered.requestId, key, answered: true }, { requestId: failed.requestId }];
    await settleHolds(redis, organizationId, { balanceMils: 95, version: 2 }, ends);
    expect(await heldOf(organizationId)).toBe("0");
    expect(await readIdempotencyState(redis, organizationId, "k")).toMatchObject({ outcome: "answered" });
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
});

describe("searches whose callers left", () => {
  const balance = { balanceMils: 100, version: 2 };
  const end = (organizationId: string, requestId: string, left?: boolean) =>
    settleHolds(redis, organizationId, balance, [{ requestId, isLeft: left }]);

  test("one that still runs frees its mils and keeps its concurrency slot until it ends, whatever comes twice", async () => {
    const organizationId = await seeded(100);
    const search = request(organizationId);
    await admit(redis, search);
    for (const _ of [1, 2]) {
      await end(organizationId, search.requestId, true);
      expect(await readUsage(redis, { organizationId, plan })).toMatchObject({
        availableMils: 100,
        creditState: { heldMils: 0, searchesInFlight: 1 },
      });
    }
    expect(await isLeft(redis, organizationId, search.requestId)).toBe(true);
    expect(await listHoldsWithMils(redis, organizationId)).toEqual({ requestIds: [], heldMils: 0 });
    for (const _ of [1, 2]) await end(organizationId, search.requestId);
    // The worker's end came first, and the API's message comes again.
    await end(organizationId, search.requestId, true);
    expect(await redis.hgetall(keysOf(organizationId).holds)).toEqual({ held: "0" });
    expect(await redis.zscore(holdIndexKey, `${organizationId}|${search.requestId}|`)).toBeNull();
  });

  test("a concurrency slot counts among the searches in flight", async () => {
    const organizationId = await seeded(100);
    const narrow = { ...plan, concurrency: 2 };
    const search = request(organizationId, { plan: narrow });
    await admit(redis, search);
    await end(organizationId, search.requestId, true);
    expect(await admit(redis, request(organizationId, { plan: narrow }))).toMatchObject({ outcome: "held" });
    expect(await admit(redis, request(organizationId, { plan: narrow }))).toMatchObject({
      outcome: "concurrency_limited",
    });
  });

  test("a search is refused where its process has as many in flight as the plan allows, whatever Redis has", async () => {
    const organizationId = await seeded(100);
    const crowded = request(organizationId, { atConcurrencyLimit: true });
    expect(await admit(redis, crowded)).toMatchObject({ outcome: "concurrency_limited", window: { used: 0 } });
    expect(await admit(redis, { ...crowded, priceMils: 101 })).toMatchObject({ outcome: "insufficient_credit" });
    expect(await admit(redis, { ...crowded, atConcurrencyLimit: false })).toMatchObject({ outcome: "held" });
  });
});

describe("the index of open holds", () => {
  beforeEach(() => redis.flushall());
  const find = (graceMs: number, range: { skip?: number; limit?: number } = {}) =>
    findOverdueHolds(redis, { graceMs, limit: 10, ...range });
  const nowMs = -1; // A grace below 0: a hold without a budget is overdue at once.
  const laterMs = -60_000;

  test("the sweeper finds only overdue holds, with the key that each owns", async () => {
    const organizationId = await seeded(100);
    const late = request(organizationId, { budgetMs: 0, key: { hash: "abc", fingerprint: "q" } });
    await admit(redis, late);
    await admit(redis, request(organizationId));
    expect(await find(60_000)).toEqual([]);
    expect(await find(nowMs)).toEqual([{ organizationId, requestId: late.requestId, keyHash: "abc" }]);
  });

  test("the sweeper finds the holds of all organizations, the oldest first, page by page", async () => {
    const requests = await Promise.all(
      [0, 10_000, 20_000].map(async (budgetMs) => request(await seeded(100), { budgetMs })),
    );
    for (const one of requests) await admit(redis, one);
    const ids = async (range: { skip?: number; limit?: number }) =>
      (await find(laterMs, range)).map(({ requestId }) => requestId);
    expect(await ids({ limit: 2 })).toEqual(requests.slice(0, 2).map(({ requestId }) => requestId));
    expect(await ids({ skip: 1 })).toEqual(requests.slice(1).map(({ requestId }) => requestId));
    expect(await readOpenHolds(redis)).toEqual({ open: 3, heldMils: 15 });
  });

  test("a hold leaves the index in the step that ends it, whatever its key", async () => {
    const organizationId = await seeded(100);
    const requests = [request(organizationId), request(organizationId, { key: { hash: "k", fingerprint: "q" } })];
    for (const one of requests) await admit(redis, one);
    await settleHolds(redis, organizationId, { balanceMils: 100, version: 2 }, requests);
    expect(await redis.exists(holdIndexKey)).toBe(0);
    expect(await readOpenHolds(redis)).toEqual({ open: 0, heldMils: 0 });
  });
});

describe("the open searches of an organization", () => {
  beforeEach(() => redis.flushall());
  const openNow = () => countOpenOrganizations(redis);

  test("each search learns how many there are with it, and none is admitted from a bound on", async () => {
    const organizationId = await seeded(100);
    const first = request(organizationId);
    expect(await admit(redis, { ...first, openMax: 0 })).toMatchObject({ outcome: "shed", window: { used: 0 } });
    expect(await admit(redis, { ...first, openMax: 1 })).toMatchObject({ outcome: "held", openSearches: 1 });
    expect(await admit(redis, first)).toMatchObject({ outcome: "held", openSearches: 1 });
    expect(await admit(redis, request(organizationId, { openMax: 1 }))).toMatchObject({ outcome: "shed" });
    expect(await admit(redis, request(organizationId, { openMax: 2 }))).toMatchObject({ openSearches: 2 });
  });

  test("an organization counts as open from its first search to the end of its last", async () => {
    const organizationId = await seeded(100);
    const searches = [request(organizationId), request(organizationId)];
    for (const search of searches) await admit(redis, search);
    await admit(redis, request(await seeded(100)));
    expect(await openNow()).toBe(2);
    for (const [at, search] of searches.entries()) {
      expect(await openNow()).toBe(2);
      await settleHolds(redis, organizationId, { balanceMils: 100, version: 2 + at }, [search]);
    }
    expect(await openNow()).toBe(1);
  });
});
