import { expect, test } from "vitest";
import { redisFailovers } from "./redis-failovers.ts";
import { runFailover } from "./run-failover.ts";

/** One of the drills, without its bounds in seconds: other tests run beside it. */

test("a switchover of Redis by its Sentinels under load loses no mil, and no process has to be restarted", async () => {
  const failover = redisFailovers.find(({ name }) => name === "redis-switched-over-sentinels");
  if (!failover) throw new Error("there is no such failover");
  const context = { say: () => undefined, interrupted: new AbortController().signal };
  const { searches, failedCount, ...result } = await runFailover(failover, context);
  expect(result).toMatchObject({ lostMils: 0, namedMils: 0, restarts: 0, broken: [] });
  expect(failedCount).toBeLessThan(searches);
});
