import { afterAll, beforeEach, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { openLog } from "../../shared/log.ts";
import { type Metrics, openMetrics } from "../../shared/metrics.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";
import { continueResync } from "../../worker/reconcile.ts";

const organizations = 2_500;

const { redis } = await openFreshRedis(afterAll);
const { database } = await openFreshDatabase(afterAll);
await database.query(
  `insert into organizations (id, name, plan_code)
   select 'org_' || lpad(n::text, 26, '0'), 'Test', 'payg' from generate_series(1, $1) n`,
  [organizations],
);
let metrics: Metrics;
beforeEach(async () => {
  metrics = openMetrics();
  await redis.flushall();
});

const log = openLog({ name: "test", level: "silent" });

/** One run of a worker that keeps its lease for this many pages. */
async function run(pages: number): Promise<void> {
  let left = pages;
  await continueResync({ database, redis, metrics, log }, async () => {
    left -= 1;
    return left >= 0;
  });
}
const stored = async () => {
  const { values } = await metrics.balancesStored.get();
  return values.find(({ labels }) => labels.why === "redis_restarted")?.value ?? 0;
};
const copies = async () => (await redis.keys(keysOf("*").balance.replace("{*}", "{org_*}"))).length;

test("a resync that a worker began is finished by others, and stores each balance once", async () => {
  await run(1);
  expect(await stored()).toBe(1_000);
  await run(0);
  await run(1);
  expect(await stored()).toBe(2_000);
  await run(10);
  await run(10);
  expect([await stored(), await copies()]).toEqual([organizations, organizations]);
});

test("a resync is begun anew once Redis lost its progress, and where no worker has led for a minute", async () => {
  while ((await stored()) < organizations) await run(10);
  await redis.flushall();
  while ((await stored()) < 2 * organizations) await run(10);
  await run(10);
  expect(await stored()).toBe(2 * organizations);
  const leftMs = await redis.pttl("resync");
  expect(leftMs).toBeGreaterThan(0);
  expect(leftMs).toBeLessThanOrEqual(protocolTimes.resyncRecordMs);
});
