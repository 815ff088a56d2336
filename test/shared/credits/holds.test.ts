import { afterAll, expect, test } from "vitest";
import { admit } from "../../../shared/credits/admit.ts";
import { readUsage, settleHolds } from "../../../shared/credits/holds.ts";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { storeBalance } from "../../../shared/credits/stored-balances.ts";
import { newId } from "../../../shared/ids.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { plan, request, seed } from "./hold-requests.ts";

/** Holds in Redis, beside what the money model compares. */

const { redis, close } = await openFreshRedis();
afterAll(close);

const seeded = (balanceMils: number) => seed(redis, balanceMils);

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
