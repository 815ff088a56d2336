import type { Redis } from "ioredis";
import { Shutdown } from "../shared/concurrency/shutdown.ts";
import { openLog } from "../shared/log.ts";
import { RedisConnections } from "../shared/redis/connections.ts";

/** Opens a connection to Redis for `work`, and closes it at its end. What goes wrong with it is logged from `level` on. */
export async function withRedis<Result>(
  settings: { REDIS_URL?: string; SENTINEL_USERNAME?: string | undefined; SENTINEL_PASSWORD?: string | undefined },
  level: "warn" | "silent",
  work: (redis: Redis) => Promise<Result>,
): Promise<Result> {
  const { REDIS_URL: url = "", SENTINEL_USERNAME: username, SENTINEL_PASSWORD: password } = settings;
  const [log, shutdown] = [openLog({ name: "start", level }), new Shutdown()];
  try {
    const connections = new RedisConnections({ url, sentinelLogin: { username, password }, log, shutdown });
    return await work(connections.openBlocking("start"));
  } finally {
    await shutdown.run(log);
  }
}
