import { Redis } from "ioredis";
import { pino } from "pino";
import { expect, test } from "vitest";
import { openMetrics } from "../../shared/metrics.ts";
import { Shutdown } from "../../shared/process/shutdown.ts";
import { readWorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import { Clock } from "../../shared/redis/clock.ts";
import { startHeartbeat } from "../../worker/heartbeat.ts";
import { SlotLevel } from "../../worker/slot-level.ts";
import { freshRedis } from "../harness/servers/servers.ts";

test("a worker reports what it can take; one that stops removes its heartbeat, and logs no error where Redis is unreachable", async () => {
  const server = await freshRedis();
  const lines: string[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const room = { taken: 0, runMs: 1_000, queued: 0, callsWaiting: 0, callsMax: 50, utilization: 0, heapShare: 0 };
  const workers = ["reachable", "unreachable"].map((name) => {
    const redis = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
    const [clock, shutdown] = [new Clock(), new Shutdown()];
    const level = new SlotLevel(1_000);
    level.decide(room);
    const parts = { level, average: { runMs: 1_000 } };
    return {
      clock,
      redis,
      shutdown,
      heartbeat: startHeartbeat({ clock, redis, shutdown, log, metrics: openMetrics() }, name, parts),
    };
  });
  const [reachable, unreachable] = workers;
  if (!reachable || !unreachable) throw new Error("there are two workers");
  const capacity = () => readWorkerCapacity(reachable.redis, reachable.clock.nowMs());
  for (const { heartbeat } of workers) await heartbeat.report();
  expect(await capacity()).toEqual({ workers: 2, slots: 64, attainableSlots: 100, ratePerMs: 0.064 });

  unreachable.redis.disconnect();
  await unreachable.shutdown.run(log);
  await reachable.shutdown.run(log);
  expect(await capacity()).toMatchObject({ workers: 1 });
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 40, msg: "the heartbeat was not removed" }),
  ]);
  reachable.redis.disconnect();
  await server.stop();
});
