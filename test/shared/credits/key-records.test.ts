import { afterAll, expect, test } from "vitest";
import { admit } from "../../../shared/credits/admit.ts";
import { readIdempotencyState, settleHolds } from "../../../shared/credits/holds.ts";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { newId } from "../../../shared/ids.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { request, seed } from "./hold-requests.ts";

const { redis, close } = await openFreshRedis();
afterAll(close);

const seeded = (balanceMils: number) => seed(redis, balanceMils);
const heldOf = (organizationId: string) => redis.hget(keysOf(organizationId).holds, "held");

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
