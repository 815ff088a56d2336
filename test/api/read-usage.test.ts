import { afterAll, expect, test } from "vitest";
import { changeLimits } from "../../api/organizations/limits.ts";
import { openUsage } from "../../api/read-usage.ts";
import { keysOf, suspectCopiesKey } from "../../shared/credits/redis-keys.ts";
import { callerWith } from "../harness/fixtures/caller.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const { redis } = await openFreshRedis(afterAll);
const { database } = await openFreshDatabase(afterAll);

const clock = { nowMs: () => Date.UTC(2030, 0, 31, 23, 59, 59) };
const readUsage = openUsage({ redis, database, clock });

/** A caller whose organization has 100 mils and a daily limit. */
async function limitedCaller() {
  const organizationId = await createPayer(database, 100);
  await changeLimits(database, "organization", organizationId, { dayMils: 50 });
  return callerWith({ organizationId, limits: { organization: { dayMils: 50 } } });
}

test("usage shows that a limit renews when its period ends by the clock of Redis, which decides what it shows as spent", async () => {
  const usage = await readUsage(await limitedCaller());
  expect(usage.limits).toMatchObject([{ period: "day", limitMils: 50, renewsAt: "2030-02-01T00:00:00.000Z" }]);
});

test("usage fails for a moment if a copy that lacks what was spent comes from entries that Postgres lost", async () => {
  const caller = await limitedCaller();
  const { organizationId } = caller;
  await redis.hset(keysOf(organizationId).balance, { balance: 100, version: 9 });
  const refused = { code: "unavailable", details: { reason: "balance_unreadable" } };
  await expect(readUsage(caller)).rejects.toMatchObject(refused);
  expect(await redis.hkeys(suspectCopiesKey)).toContain(`${organizationId}|9`);
});
