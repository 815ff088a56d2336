import { z } from "zod";
import type { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { loadResultSchema } from "../load/load.ts";
import { AskedProcess } from "../processes/asked-process.ts";
import type { Contestant } from "./contestant.ts";
import { openRedis, openRedisCounters } from "./durable-servers.ts";

/**
 * Starts bare BullMQ: a process of callers that add a job and wait until it is finished, a worker process that returns this
 * answer, and a Redis. It has no HTTP, no Postgres and no money, so it shows the cost of everything around the queue.
 */
export async function openBullmq(answer: unknown, shutdown: Shutdown): Promise<Contestant> {
  const redis = await openRedis();
  shutdown.register("Redis of BullMQ", redis.stop);
  const worker = await AskedProcess.start(new URL("./bullmq-worker.ts", import.meta.url));
  shutdown.register("worker of BullMQ", () => worker.stop());
  const caller = await AskedProcess.start(new URL("./bullmq-caller.ts", import.meta.url));
  shutdown.register("caller of BullMQ", () => caller.stop());
  for (const one of [worker, caller]) await one.ask(z.literal("ready"), { port: redis.port, answer });
  return {
    name: "bullmq",
    pids: { api: [caller.pid], worker: [worker.pid], redis: [redis.pid] },
    readRedis: openRedisCounters(redis.url, shutdown),
    run: ({ connections, seconds }) => caller.ask(loadResultSchema, { connections, seconds }),
  };
}
