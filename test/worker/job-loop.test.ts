import { expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { openLog } from "../../shared/log.ts";
import { newId } from "../../shared/ids.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { createQueue, queueKeys } from "../../shared/queue/search-queue.ts";
import { RedisConnections } from "../../shared/redis/connections.ts";
import { JobLoop } from "../../worker/job-loop.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { searchJob } from "../harness/fixtures/queries.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const log = openLog({ name: "test", level: "silent" });

/** A loop with two slots and one search, which runs until the test ends. */
async function startWithOneSearch() {
  const { redis, server, close } = await openFreshRedis();
  const shutdown = new Shutdown();
  const connections = new RedisConnections({ url: server.url, log, shutdown });
  const queue = createQueue({ url: server.url });
  const [begun, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const run = () => {
    begun.resolve();
    return ended.promise;
  };
  const parts = { connections, redis, metrics: openMetrics(), log };
  const loop = new JobLoop(parts, { run, failed: () => ended.promise }, { workerId: "one", concurrency: 2 });
  onTestFinished(async () => {
    ended.resolve();
    await loop.stop();
    await queue.close();
    await shutdown.run(log);
    await close();
  });
  const add = async () => {
    const job = searchJob({ requestId: newId("req") });
    await queue.add("search", job, { jobId: job.requestId });
  };
  let looks = 0;
  loop.whenFull(() => (looks += 1));
  await loop.start();
  await add();
  await begun.promise;
  return { loop, redis, add, looks: () => looks };
}

test("a worker that gets fewer slots than searches run looks for searches within shares, as with the last slot taken", async () => {
  const { loop, looks } = await startWithOneSearch();
  expect(looks()).toBe(0);
  loop.setConcurrency(1);
  expect(looks()).toBe(1);
});

test("a worker that waits for a search, and has no slot any more when one is added, wakes another that waits", async () => {
  const { loop, redis, add } = await startWithOneSearch();
  const isWaiting = async (name: string) =>
    new RegExp(` name=${name} .* flags=b `).test(String(await redis.call("CLIENT", "LIST")));
  await eventually(() => isWaiting("serpmill-worker-takes"));
  loop.setConcurrency(1);
  const other = redis.duplicate({ connectionName: "other" });
  onTestFinished(() => other.disconnect());
  // Behind the first worker, which gets the marker of the search.
  const woken = other.bzpopmin(queueKeys.marker, 5);
  await eventually(() => isWaiting("other"));
  await add();
  expect(await woken).not.toBeNull();
});
