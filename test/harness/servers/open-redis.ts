import { Redis } from "ioredis";
import type { LocalServer } from "../../../local/local-server.ts";
import { freshRedis } from "./servers.ts";

/** A new Redis and a connection to it, for tests that start no process. `end` gets what closes both, as `afterAll` does. */
export async function openFreshRedis(
  end?: (close: () => Promise<void>) => void,
): Promise<{ redis: Redis; server: LocalServer; close: () => Promise<void> }> {
  const server = await freshRedis();
  const redis = new Redis(server.url);
  const close = async () => {
    redis.disconnect();
    await server.stop();
  };
  end?.(close);
  return { redis, server, close };
}
