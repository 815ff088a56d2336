import { Redis } from "ioredis";
import type { LocalServer } from "../../../local/local-server.ts";
import { freshRedis } from "./servers.ts";

/** A new Redis and a connection to it, for tests that start no process. `end` gets what closes both, as `afterAll` does. */
export async function openFreshRedis(
  end: (close: () => Promise<void>) => void,
): Promise<{ redis: Redis; server: LocalServer }> {
  const server = await freshRedis();
  const redis = new Redis(server.url);
  end(async () => {
    redis.disconnect();
    await server.stop();
  });
  return { redis, server };
}
