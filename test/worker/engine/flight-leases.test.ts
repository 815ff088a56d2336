import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import {
  acquireLease,
  keepLeaseAlive,
  publishResult,
  releaseLease,
  releaseWithoutResult,
} from "../../../worker/engine/flight-leases.ts";
import type { SlotClaim } from "../../../worker/providers/policies/attempt.ts";
import { answerOf, refused } from "../../harness/processes/worker-engine.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const flight = "fingerprint";
const publishedMs = 5_000;

const { redis, server } = await openFreshRedis(afterAll);
beforeEach(() => redis.flushall());

const claimOf = (organizationId: string, openSearches = 1) => ({ organizationId, openSearches });
const acquireAs = (token: string, { sinceMs = 0, awaited = "", claim = claimOf("one") } = {}) =>
  acquireLease(redis, flight, { token, sinceMs, awaited, claim, timeoutMs: 20_000 });
const publish = (token: string, answer = answerOf(), { atMs = 1_000, keepMs = 0 } = {}) =>
  publishResult(redis, flight, { answer, atMs, token, keepMs });
const ttl = () => redis.pttl(`lease:${flight}`);
/** An answer as other workers get it: without calls, which stay with the search that made them. */
const published = (answer: object, flightId = "one") => ({ kind: "published", answer, flight: flightId, atMs: 1_000 });

test("a published answer keeps the keyword that was searched instead, if there is one", async () => {
  const answer = { ...answerOf(), searchedKeyword: "garden pump" };
  await publish("one", answer);
  expect(await acquireAs("other")).toEqual(published(answer));
  await publish("one", answerOf());
  expect(await acquireAs("other")).toEqual(published(answerOf()));
});

test("an answer stays for the workers that waited for it, also while the next worker searches", async () => {
  await acquireAs("one");
  await acquireAs("waiting");
  await publish("one");
  expect(await acquireAs("next", { sinceMs: 1_001 })).toEqual({ kind: "acquired" });
  expect(await acquireAs("waiting", { sinceMs: 1_000, awaited: "one" })).toEqual(published(answerOf()));
});

test("an answer from before the clock of Redis was set back is not taken for a new one", async () => {
  await publish("one", answerOf(), { atMs: Date.now() + 3_600_000 });
  expect(await acquireAs("next", { sinceMs: Date.now() - 60_000 })).toEqual({ kind: "acquired" });
});

test("a worker whose lease was acquired without its knowledge acquires it again", async () => {
  await acquireAs("one");
  expect(await acquireAs("one")).toEqual({ kind: "acquired" });
});

test("a lease that no other worker waits for is deleted on release", async () => {
  await acquireAs("one");
  expect(await releaseLease(redis, flight, "one", { after: "failure" })).toBe("released");
  expect(await redis.dbsize()).toBe(0);
});

test("a lease whose result is awaited stays held on release", async () => {
  await acquireAs("one");
  await acquireAs("other");
  expect(await releaseLease(redis, flight, "one", { after: "failure" })).toBe("awaited");
  expect(await acquireAs("third")).toEqual({ kind: "held", holder: "one" });
});

test("a worker that stalled until its lease was another's hands over and publishes nothing of that one's flight", async () => {
  await acquireAs("other");
  await acquireAs("waiting");
  await releaseWithoutResult(redis, flight, "stalled");
  await publish("stalled", refused);
  await publish("stalled");
  expect(await acquireAs("third")).toEqual({ kind: "held", holder: "other" });
  await publish("other");
  expect(await acquireAs("waiting")).toEqual(published(answerOf(), "other"));
});

test("a worker that lost its lease cannot release that of the next holder", async () => {
  await acquireAs("one");
  await redis.del(`lease:${flight}`);
  expect(await releaseLease(redis, flight, "one", { after: "failure" })).toBe("lost");
  await acquireAs("other");
  expect(await releaseLease(redis, flight, "one", { after: "failure" })).toBe("lost");
  expect(await acquireAs("third")).toEqual({ kind: "held", holder: "other" });
});

test("after a release without a result, the next holder still knows that workers wait", async () => {
  await acquireAs("one");
  await acquireAs("waiting");
  await releaseWithoutResult(redis, flight, "one");
  expect(await acquireAs("next")).toEqual({ kind: "acquired" });
  expect(await releaseLease(redis, flight, "next", { after: "failure" })).toBe("awaited");
});

test("of the searches that wait elsewhere, the holder takes the claim with the fewest open ones, until its next renewal", async () => {
  await acquireAs("first");
  await acquireAs("gone", { claim: claimOf("gone", 1) });
  await releaseWithoutResult(redis, flight, "first");
  await acquireAs("one");
  for (const openSearches of [50, 2, 7])
    await acquireAs("other", { claim: claimOf(`has ${openSearches}`, openSearches) });
  const joined: SlotClaim[] = [];
  const join = (claim: SlotClaim) => void joined.push(claim);
  const { promise: left, resolve: leave } = Promise.withResolvers<SlotClaim>();
  const stop = keepLeaseAlive(redis, flight, "one", { join, leave });
  expect(await left).toEqual(claimOf("has 2", 2));
  stop();
  expect(joined).toEqual([claimOf("has 2", 2)]);
});

test("the holder counts anew how many searches the organization has open that waits elsewhere", async () => {
  await acquireAs("one");
  await acquireAs("other", { claim: claimOf("crowd", 1) });
  const joined: SlotClaim[] = [];
  const join = (claim: SlotClaim) => void joined.push(claim);
  const stop = keepLeaseAlive(redis, flight, "one", { join, leave: () => undefined });
  await eventually(async () => joined.length === 1);
  await eventually(async () => {
    await acquireAs("other", { claim: claimOf("crowd", 30) });
    return joined[0]?.openSearches === 30;
  });
  stop();
  expect(joined).toHaveLength(1);
});

test("results stay for five seconds, and cached answers for as long as the cache keeps them", async () => {
  for (const answer of [answerOf(), refused]) {
    await publish("one", answer);
    expect(await ttl()).toBeGreaterThan(2_000);
    expect(await ttl()).toBeLessThanOrEqual(publishedMs);
  }
  await publish("one", answerOf(), { keepMs: 60_000 });
  expect(await ttl()).toBeGreaterThan(publishedMs);
});

test("a Redis that does not reply in time is an error", async () => {
  const blocked = new Redis(server.url);
  // Commands that follow on this connection wait forever.
  blocked.blpop("never", 0).catch(() => undefined);
  const acquiring = acquireLease(blocked, flight, { token: "one", sinceMs: 0, claim: claimOf("one"), timeoutMs: 20 });
  await expect(acquiring).rejects.toThrow("20 ms");
  blocked.disconnect();
});
