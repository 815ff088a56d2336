import { afterAll, beforeEach, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { openLog } from "../../shared/log.ts";
import { type Metrics, openMetrics } from "../../shared/metrics.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";
import { Resync } from "../../worker/reconcile.ts";

const organizations = 2_500;

const { redis } = await openFreshRedis(afterAll);
const { database } = await openFreshDatabase(afterAll);
await database.query(
  `insert into organizations (id, name, plan_code)
   select 'org_' || lpad(n::text, 26, '0'), 'Test', 'payg' from generate_series(1, $1) n`,
  [organizations],
);
let metrics: Metrics;
let resync: Resync;
beforeEach(async () => {
  metrics = openMetrics();
  resync = new Resync();
  await redis.flushall();
});

const log = openLog({ name: "test", level: "silent" });

/** One run of a worker that keeps its lease for this many pages. */
async function run(pages: number, onPage: () => void = () => undefined): Promise<void> {
  let left = pages;
  await resync.continue({ database, redis, metrics, log }, async () => {
    left -= 1;
    // Behind the first await of the page.
    if (left >= 0) setImmediate(onPage);
    return left >= 0;
  });
}
const stored = async () => {
  const { values } = await metrics.balancesStored.get();
  return values.find(({ labels }) => labels.why === "redis_restarted")?.value ?? 0;
};
const copies = async () => (await redis.keys(keysOf("*").balance.replace("{*}", "{org_*}"))).length;

test("a resync continues in each run where the last one ended, and stores each balance once", async () => {
  await run(1);
  expect(await stored()).toBe(1_000);
  await run(0);
  await run(1);
  expect(await stored()).toBe(2_000);
  while ((await stored()) < organizations) await run(10);
  await run(10);
  expect([await stored(), await copies()]).toEqual([organizations, organizations]);
});

test("a resync that is begun anew while it stores a page stores that page again", async () => {
  await run(1, () => resync.beginAnew());
  expect(await stored()).toBe(1_000);
  await redis.flushall();
  while ((await stored()) < 1_000 + organizations) await run(10);
  await run(10);
  expect([await stored(), await copies()]).toEqual([1_000 + organizations, organizations]);
});
