import type { Redis } from "ioredis";
import { readOldestWaitMs } from "../../shared/queue/backlog.ts";
import { readWorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import type { Clock } from "../../shared/redis/clock.ts";
import { failure, type Finding, ok, warning } from "./finding.ts";

const longWaitMs = 5_000;

/** Whether workers take searches, by their heartbeats and the queue. @throws if Redis does not answer. */
export async function examineWorkers(redis: Redis, clock: Clock): Promise<Finding[]> {
  const { workers, slots } = await readWorkerCapacity(redis, clock.nowMs());
  if (workers === 0)
    return [
      failure("workers", "no heartbeat", "Start a worker: npm run worker. If one runs, check its log and /readyz."),
    ];
  const waitMs = await readOldestWaitMs(redis, clock.nowMs());
  const found = `${workers} with ${slots} slots; the oldest search has waited ${Math.round(waitMs)} ms`;
  if (waitMs < longWaitMs) return [ok("workers", found)];
  return [warning("workers", found, "Start more workers, or check whether the providers are slow.")];
}
