import { expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { openLog } from "../../shared/log.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { RedisConnections } from "../../shared/redis/connections.ts";
import { JobLoop } from "../../worker/job-loop.ts";
import { searchJob } from "../harness/fixtures/queries.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const log = openLog({ name: "test", level: "silent" });

test("a worker that gets fewer slots than searches run looks for searches within shares, as with the last slot taken", async () => {
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
  let looks = 0;
  loop.whenFull(() => (looks += 1));
  await loop.start();
  const job = searchJob();
  await queue.add("search", job, { jobId: job.requestId });
  await begun.promise;
  expect(looks).toBe(0);
  loop.setConcurrency(1);
  expect(looks).toBe(1);
});
