import { afterAll, expect, test } from "vitest";
import { admit } from "../../../shared/credits/admit.ts";
import { settleHolds } from "../../../shared/credits/holds.ts";
import type { Decision } from "../../../shared/credits/ledger.ts";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { type EndedCalls, endedCalls, readUnpaidCalls, unpaidLevels } from "../../../shared/credits/unpaid-calls.ts";
import { newId } from "../../../shared/ids.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { plan, request, seed } from "./hold-requests.ts";

/** The budget of unpaid provider calls: 60 an hour here, of which each token may use 30. */

const hourMs = 3_600_000;
const key = { hash: "k", fingerprint: "q" };
const { redis } = await openFreshRedis(afterAll);

/** Ends a search without a hold. @returns the calls that were counted. */
function end(organizationId: string, calls: Partial<EndedCalls>, requestId = newId("req")): Promise<number> {
  const budget = { tokenId: "tok", isKeyed: false, callsPerHour: plan.unpaidCalls };
  const ended: EndedCalls = { kind: "unpaid", calls: 0, flight: newId("req"), ...budget, ...calls };
  return settleHolds(redis, organizationId, { balanceMils: 100, version: 2 }, [{ requestId, calls: ended }]);
}
const levelOf = (organizationId: string) => readUnpaidCalls(redis, { organizationId, plan });
const outcomeOf = async (organizationId: string, given: Parameters<typeof request>[1] = {}) =>
  (await admit(redis, request(organizationId, given))).outcome;

test("calls count once, however often the end of their search comes", async () => {
  const organizationId = await seed(redis, 100);
  const [calls, requestId] = [{ calls: 3, flight: newId("req") }, newId("req")];
  expect(await end(organizationId, calls, requestId)).toBe(3);
  expect(await end(organizationId, calls, requestId)).toBe(0);
  expect(await levelOf(organizationId)).toBe(3);
});

test("beyond the budget searches are refused until it has drained, which it does evenly over the hour", async () => {
  const organizationId = await seed(redis, 100);
  for (const tokenId of ["one", "two"]) await end(organizationId, { calls: 29, tokenId });
  expect(await outcomeOf(organizationId)).toBe("held");
  await end(organizationId, { calls: 8, tokenId: "three" });
  const refused = await admit(redis, request(organizationId));
  expect(refused).toMatchObject({ outcome: "unpaid_calls" });
  // 0 if the minute of the search before has ended.
  expect(refused.window.used).toBeLessThanOrEqual(1);
  // Six calls too many take six minutes.
  const retryAfterMs = refused.outcome === "unpaid_calls" ? refused.retryAfterMs : 0;
  expect(retryAfterMs).toBeGreaterThan(hourMs / 10 - 60_000);
  expect(retryAfterMs).toBeLessThanOrEqual(hourMs / 10 + 1);

  await redis.pexpire(keysOf(organizationId).unpaid, hourMs - 1);
  expect(await outcomeOf(organizationId)).toBe("held");
});

test("one token uses at most half of the budget, and the others go on", async () => {
  const organizationId = await seed(redis, 100);
  await end(organizationId, { calls: 31 });
  expect([await outcomeOf(organizationId), await outcomeOf(organizationId, { tokenId: "other" })]).toEqual([
    "unpaid_calls",
    "held",
  ]);
});

test("a token whose calls in flight exceed the budget leaves the other tokens their half", async () => {
  const organizationId = await seed(redis, 100);
  for (const calls of [29, 30, 30]) await end(organizationId, { calls, tokenId: "one" });
  await end(organizationId, { calls: 29, tokenId: "two" });
  expect(await levelOf(organizationId)).toBe(118);
  expect(await outcomeOf(organizationId, { tokenId: "one" })).toBe("unpaid_calls");
  for (const tokenId of ["two", "three"]) expect(await outcomeOf(organizationId, { tokenId })).toBe("held");
});

test("many tokens exceed the budget by one more at most, and drain no faster than a single one", async () => {
  const organizationId = await seed(redis, 100);
  for (const tokenId of ["one", "two"]) {
    expect(await outcomeOf(organizationId, { tokenId })).toBe("held");
    await end(organizationId, { calls: 90, tokenId });
  }
  const refused = await admit(redis, request(organizationId, { tokenId: "three" }));
  expect(refused).toMatchObject({ outcome: "unpaid_calls" });
  // Until 120 of the 180 calls have drained.
  const retryAfterMs = refused.outcome === "unpaid_calls" ? refused.retryAfterMs : 0;
  expect(retryAfterMs).toBeGreaterThan(2 * hourMs - 60_000);
  expect(retryAfterMs).toBeLessThanOrEqual(2 * hourMs + 1);
});

test("a clock of Redis that was set back by days refuses no caller for what was left unpaid before", async () => {
  const organizationId = await seed(redis, 100);
  await end(organizationId, { calls: 31 });
  for (const level of unpaidLevels(organizationId, "tok", false)) await redis.pexpire(level, 72 * hourMs);
  expect(await outcomeOf(organizationId)).toBe("held");
  expect(await end(organizationId, { calls: 1 })).toBe(1);
  expect(await levelOf(organizationId)).toBe(1);
});

test("searches with a key are refused only for what keyed searches left unpaid", async () => {
  const organizationId = await seed(redis, 100);
  await end(organizationId, { calls: 31 });
  expect([await outcomeOf(organizationId), await outcomeOf(organizationId, { key })]).toEqual(["unpaid_calls", "held"]);

  const keyed = await seed(redis, 100);
  await end(keyed, { calls: 31, isKeyed: true });
  expect([await outcomeOf(keyed), await outcomeOf(keyed, { key })]).toEqual(["unpaid_calls", "unpaid_calls"]);
});

test("calls whose answer another search paid for never count, and do if in the end none of them paid", async () => {
  const [first, second] = [await seed(redis, 100), await seed(redis, 100)];
  const [flight, maker, sharer] = [newId("req"), newId("req"), newId("req")];
  expect(await end(second, { kind: "paid", flight }, sharer)).toBe(0);
  expect(await end(first, { calls: 7, flight }, maker)).toBe(0);
  expect([await levelOf(first), await levelOf(second)]).toEqual([0, 0]);
  expect(await end(second, { flight }, sharer)).toBe(7);
  expect([await levelOf(first), await levelOf(second)]).toEqual([0, 7]);

  // In the other order.
  const other = newId("req");
  await end(second, { kind: "paid", flight: other }, sharer);
  expect(await end(second, { flight: other }, sharer)).toBe(0);
  expect(await end(first, { calls: 4, flight: other }, maker)).toBe(4);
});

test("what is remembered of unpaid calls is bounded, and ends by itself", async () => {
  const organizationId = await seed(redis, 100);
  const flight = newId("req");
  for (const _ of Array.from({ length: 105 })) await end(organizationId, { kind: "paid", flight });
  expect(await redis.hlen(`flight:${flight}`)).toBe(100);
  await end(organizationId, { calls: 1, isKeyed: true });
  const keys = [
    `flight:${flight}`,
    ...[false, true].flatMap((isKeyed) => unpaidLevels(organizationId, "tok", isKeyed)),
  ];
  for (const name of keys) expect(await redis.pttl(name)).toBeGreaterThan(0);
});

test.each([
  { ended: "left by its caller", reason: "caller_disconnected", counts: true },
  { ended: "whose key had paid for another query", reason: "idempotency_key_reused", counts: true },
  { ended: "out of time, of which it had little", reason: "engine_timeout", hadLittleTime: true, counts: true },
  { ended: "out of time, of which it had all", reason: "engine_timeout", counts: false },
  { ended: "failed by the provider", reason: "provider_unavailable", hadLittleTime: true, counts: false },
  { ended: "refused because Redis had lost what was spent", reason: "daily_limit", counts: false },
  { ended: "that lost its workers", reason: "worker_failed", counts: false },
] as const)("the calls of a search $ended count: $counts", ({ reason, counts, ...given }) => {
  const { hadLittleTime = false } = { hadLittleTime: undefined, ...given };
  const calls = { calls: 2, flight: "f", tokenId: "tok", isKeyed: true, callsPerHour: 60 };
  const decision: Decision = {
    requestId: "req",
    organizationId: "org",
    kind: "refund",
    chargedMils: 0,
    reason,
    isNew: true,
    reversed: false,
    balance: { balanceMils: 0, version: 1 },
  };
  expect(endedCalls({ ...calls, hadLittleTime }, decision)).toEqual(counts ? { ...calls, kind: "unpaid" } : undefined);
});
