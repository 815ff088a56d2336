import { afterAll, beforeEach, expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { openLog } from "../../shared/log.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { OpenSearchCounts, watchOpenSearches } from "../../worker/open-searches.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const { redis } = await openFreshRedis(afterAll);
beforeEach(() => redis.flushall());

const hold = (organizationId: string, searches: number) =>
  redis.hset(keysOf(organizationId).holds, {
    held: searches * 5,
    ...Object.fromEntries(Array.from({ length: searches }, (_, n) => [`req_${n}`, "5:"])),
  });

test("the first search of many is one of many as soon as the numbers are read, and the last one of them is alone again", async () => {
  const counts = new OpenSearchCounts();
  const [many, one] = [
    counts.begin({ organizationId: "org_many", openSearches: 1 }),
    counts.begin({ organizationId: "org_one", openSearches: 1 }),
  ];
  await hold("org_many", 30);
  await hold("org_one", 1);
  await counts.refresh(redis);
  expect([many.openSearches, one.openSearches]).toEqual([30, 1]);
  await redis.del(keysOf("org_many").holds);
  await hold("org_many", 1);
  await counts.refresh(redis);
  expect(many.openSearches).toBe(1);
});

test("all searches of an organization that run have one claim, until none of them runs", () => {
  const counts = new OpenSearchCounts();
  const searches = [2, 7, 3].map((openSearches) => ({ organizationId: "org_one", openSearches }));
  const claims = searches.map((search) => counts.begin(search));
  expect(new Set(claims).size).toBe(1);
  expect(claims[0]?.openSearches).toBe(7);
  for (const search of searches) counts.end(search);
  expect(counts.begin({ organizationId: "org_one", openSearches: 1 }).openSearches).toBe(1);
});

test("a worker reads the numbers while calls wait for a slot at a provider, and only then", async () => {
  const log = openLog({ name: "test", level: "silent" });
  const shutdown = new Shutdown();
  onTestFinished(() => shutdown.run(log));
  let [callsWaiting, asked] = [0, 0];
  const google = {
    callsWaiting: () => {
      asked += 1;
      return callsWaiting;
    },
  };
  const counts = watchOpenSearches({ redis, log, metrics: openMetrics(), shutdown }, google);
  const claim = counts.begin({ organizationId: "org_one", openSearches: 1 });
  await hold("org_one", 3);
  const before = asked;
  await eventually(async () => asked >= before + 2);
  expect(claim.openSearches).toBe(1);
  callsWaiting = 1;
  await eventually(async () => claim.openSearches === 3);
});
