import type { Redis } from "ioredis";
import { runPeriodically } from "../concurrency/run-periodically.ts";
import type { Log } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { Shutdown } from "../concurrency/shutdown.ts";

const measuringPauseMs = 5_000;

/** What Redis uses, and its maxmemory: 0 if that is not set. */
async function readMemory(redis: Redis): Promise<{ usedBytes: number; limitBytes: number }> {
  const info = await redis.info("memory");
  const bytesOf = (field: string) => Number(new RegExp(`^${field}:(\\d+)`, "m").exec(info)?.[1] ?? 0);
  return { usedBytes: bytesOf("used_memory"), limitBytes: bytesOf("maxmemory") };
}

/** Whether Redis uses less than a share of its maxmemory. Always true if that is not set. */
export async function hasRedisHeadroom(redis: Redis, shareMax: number): Promise<boolean> {
  const { usedBytes, limitBytes } = await readMemory(redis);
  return limitBytes === 0 || usedBytes < limitBytes * shareMax;
}

/** Reports the memory of Redis as metrics. It only reads, so it also sees a Redis that is full. */
export function startMeasuringMemory(parts: { redis: Redis; metrics: Metrics; log: Log; shutdown: Shutdown }): void {
  const { redis, ...background } = parts;
  const { redisMemoryUsed, redisMemoryLimit } = background.metrics;
  const run = async () => {
    const { usedBytes, limitBytes } = await readMemory(redis);
    redisMemoryUsed.set(usedBytes);
    if (limitBytes > 0) redisMemoryLimit.set(limitBytes);
    else redisMemoryLimit.remove();
  };
  const measured = [redisMemoryUsed, redisMemoryLimit];
  runPeriodically({ name: "memory", pauseMs: measuringPauseMs, run, measured, ...background });
}
