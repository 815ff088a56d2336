import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type AdmissionRequest,
  admit,
  defineHoldScripts,
  holdIndexKey,
  keysOf,
  readIdempotencyState,
  readRemembered,
  readUsage,
  settleHolds,
} from "../../../shared/credits/holds.ts";
import {
  defineHoldIndexScripts,
  findOverdueHolds,
  indexHolds,
  readOpenHolds,
} from "../../../shared/credits/hold-deadlines.ts";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { newId } from "../../../shared/ids.ts";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

const plan = {
  code: "test",
  priceMils: 5,
  windowLimit: 1_000,
  windowSeconds: 60,
  concurrency: 100,
  startingGrantMils: 0,
  operations: [],
};
let server: LocalServer;
let redis: Redis;
beforeAll(async () => {
  server = await freshRedis();
  redis = new Redis(server.url);
  defineHoldScripts(redis);
  defineHoldIndexScripts(redis);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

async function seeded(balanceMils: number, version = 1): Promise<string> {
  const organizationId = newId("org");
  await storeBalance(redis, organizationId, { balanceMils, version });
  return organizationId;
}

const request = (organizationId: string, given: Partial<AdmissionRequest> = {}): AdmissionRequest => ({
  organizationId,
  requestId: newId("req"),
  priceMils: 5,
  budgetMs: 30_000,
  plan,
  key: undefined,
  closed: false,
  ...given,
});
const available = async (organizationId: string) => (await readUsage(redis, organizationId, plan)).availableMils;
const heldOf = (organizationId: string) => redis.hget(keysOf(organizationId).holds, "held");

test("two connections with the same balance never spend it twice", async () => {
  const organizationId = await seeded(50);
  const other = new Redis(server.url);
  defineHoldScripts(other);
  const outcomes = await Promise.all(
    Array.from({ length: 60 }, (_, n) => admit(n % 2 ? redis : other, request(organizationId))),
  );
  other.disconnect();
  expect(outcomes.filter(({ outcome }) => outcome === "held")).toHaveLength(10);
  expect(outcomes.filter(({ outcome }) => outcome === "short")).toHaveLength(50);
  expect(await available(organizationId)).toBe(0);
});

test("an admission that arrives twice holds its mils once", async () => {
  const organizationId = await seeded(100);
  const twice = request(organizationId, { key: { hash: "k", fingerprint: "q" } });
  expect(await admit(redis, twice)).toMatchObject({ outcome: "held", remainingMils: 95 });
  expect(await admit(redis, twice)).toMatchObject({ outcome: "held" });
  expect(await available(organizationId)).toBe(95);
});

test("a settlement that arrives late, twice or out of order has no further effect", async () => {
  const organizationId = await seeded(100);
  const [one, two] = [request(organizationId), request(organizationId)];
  await admit(redis, one);
  await admit(redis, two);
  const first = () =>
    settleHolds(redis, organizationId, { balanceMils: 95, version: 2 }, [{ requestId: one.requestId }]);
  const second = () =>
    settleHolds(redis, organizationId, { balanceMils: 90, version: 3 }, [{ requestId: two.requestId }]);
  await second();
  expect(await available(organizationId)).toBe(85); // The other is still held.
  await first();
  await first();
  await second();
  expect(await available(organizationId)).toBe(90);
  expect(await heldOf(organizationId)).toBe("0");
  expect(await redis.hgetall(keysOf(organizationId).balance)).toEqual({ balance: "90", version: "3" });
});

test("a hold of 0 mils, for a key that has paid, is placed and dropped like any other", async () => {
  const organizationId = await seeded(10);
  const free = request(organizationId, { priceMils: 0 });
  expect(await admit(redis, free)).toMatchObject({ outcome: "held", remainingMils: 10 });
  await settleHolds(redis, organizationId, { balanceMils: 10, version: 2 }, [free]);
  expect(await redis.hgetall(keysOf(organizationId).holds)).toEqual({ held: "0" });
});

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
  expect(await admit(redis, request(organizationId))).toMatchObject({ outcome: "cold" });
  expect(await redis.keys(`*${organizationId}*`)).toEqual([]);
  await storeBalance(redis, organizationId, { balanceMils: 4, version: 1 });
  expect(await admit(redis, request(organizationId))).toMatchObject({ outcome: "short", availableMils: 4, version: 1 });
  expect(await redis.exists(keysOf(organizationId).window, keysOf(organizationId).holds)).toBe(0);
});

test("the first answer under a key stays when another run brings a second one", async () => {
  const organizationId = await seeded(100);
  const key = { hash: "k", fingerprint: "q" };
  const owner = request(organizationId, { key });
  await admit(redis, owner);
  expect(await admit(redis, request(organizationId, { key }))).toMatchObject({
    outcome: "waiting",
    requestId: owner.requestId,
  });
  const balance = { balanceMils: 95, version: 2 };
  const end = (answer: string) => [{ requestId: owner.requestId, key, answer: Buffer.from(answer) }];
  expect(readRemembered(await settleHolds(redis, organizationId, balance, end("first")))).toEqual([undefined]);
  expect(readRemembered(await settleHolds(redis, organizationId, balance, end("second")))).toEqual([
    { body: Buffer.from("first"), requestId: owner.requestId },
  ]);
  expect(await admit(redis, request(organizationId, { key }))).toMatchObject({
    outcome: "replayed",
    body: Buffer.from("first"),
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
  expect(await readIdempotencyState(redis, organizationId, "k")).toEqual({ outcome: "running" });
  await settleHolds(redis, organizationId, balance, [{ requestId: owner.requestId, key, failure: "mine" }]);
  expect(await readIdempotencyState(redis, organizationId, "k")).toEqual({ outcome: "failed", failure: "mine" });
  expect(await admit(redis, request(organizationId, { key: { ...key, fingerprint: "other" } }))).toMatchObject({
    outcome: "held",
  });
});

describe("abandoned searches", () => {
  const balance = { balanceMils: 100, version: 2 };
  const end = (organizationId: string, requestId: string, abandoned?: "running" | "ended") =>
    settleHolds(redis, organizationId, balance, [{ requestId, abandoned }]);
  const countOf = (organizationId: string) => redis.zcard(keysOf(organizationId).abandoned);

  test("one that still runs frees its mils and keeps its place until it ends, and is counted once, whatever comes twice", async () => {
    const organizationId = await seeded(100);
    const search = request(organizationId);
    await admit(redis, search);
    for (const _ of [1, 2]) {
      await end(organizationId, search.requestId, "running");
      expect(await readUsage(redis, organizationId, plan)).toMatchObject({
        availableMils: 100,
        creditState: { heldMils: 0, searchesInFlight: 1 },
      });
    }
    for (const _ of [1, 2]) await end(organizationId, search.requestId);
    // The worker's end came first, and the API's message comes again.
    await end(organizationId, search.requestId, "running");
    expect(await redis.hgetall(keysOf(organizationId).holds)).toEqual({ held: "0" });
    expect(await redis.zscore(holdIndexKey, `${organizationId}|${search.requestId}|`)).toBeNull();
    expect(await countOf(organizationId)).toBe(1);
  });

  test("a place counts among the searches in flight", async () => {
    const organizationId = await seeded(100);
    const narrow = { ...plan, concurrency: 2 };
    const search = request(organizationId, { plan: narrow });
    await admit(redis, search);
    await end(organizationId, search.requestId, "running");
    expect(await admit(redis, request(organizationId, { plan: narrow }))).toMatchObject({ outcome: "held" });
    expect(await admit(redis, request(organizationId, { plan: narrow }))).toMatchObject({ outcome: "crowded" });
  });

  test("beyond as many as may be in flight, searches without a key are refused until the oldest is an hour old", async () => {
    const organizationId = await seeded(100);
    const narrow = { ...plan, concurrency: 2 };
    for (const _ of [1, 2, 3]) await end(organizationId, newId("req"), "ended");
    const refused = await admit(redis, request(organizationId, { plan: narrow }));
    expect(refused).toMatchObject({ outcome: "abandoned", window: { used: 0 } });
    expect(await redis.exists(keysOf(organizationId).window, keysOf(organizationId).holds)).toBe(0);
    const key = { hash: "k", fingerprint: "q" };
    expect(await admit(redis, request(organizationId, { plan: narrow, key }))).toMatchObject({ outcome: "held" });

    // Two of the three become an hour old.
    const ids = await redis.zrange(keysOf(organizationId).abandoned, 0, "-1");
    for (const id of ids.slice(0, 2)) await redis.zincrby(keysOf(organizationId).abandoned, -3_600_000, id);
    expect(await admit(redis, request(organizationId, { plan: narrow }))).toMatchObject({ outcome: "held" });
    await end(organizationId, newId("req"), "ended");
    expect(await countOf(organizationId)).toBe(2);
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

  test("an entry whose hold a process without the index has ended is removed, and no search is refunded for it", async () => {
    const organizationId = await seeded(100);
    const gone = request(organizationId, { budgetMs: 0 });
    await admit(redis, gone);
    await redis.hdel(keysOf(organizationId).holds, gone.requestId);
    expect(await find(nowMs)).toEqual([]);
    expect(await redis.exists(holdIndexKey)).toBe(0);
  });

  test("the holds of a process without the index are added to it, once", async () => {
    const [one, other] = [await seeded(100), await seeded(100)];
    const late = request(one, { budgetMs: 0, key: { hash: "abc", fingerprint: "q" } });
    await admit(redis, late);
    await admit(redis, request(other));
    await redis.zrem(holdIndexKey, `${one}|${late.requestId}|abc`);
    expect(await find(nowMs)).toEqual([]);
    expect(await indexHolds(redis, [one, other, newId("org")])).toBe(1);
    expect(await indexHolds(redis, [one, other])).toBe(0);
    expect(await find(nowMs)).toEqual([{ organizationId: one, requestId: late.requestId, keyHash: "abc" }]);
  });
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
