import { Redis } from "ioredis";
import { freePort } from "../../../local/ports.ts";
import { eventually } from "../assertions/eventually.ts";
import { startHaproxy } from "./haproxy.ts";
import type { RedisPair } from "./redis-pair.ts";
import { usualPasswords } from "./redis-users.ts";

export interface RedisProxy {
  /** The one address of both servers. */
  url: string;
  /** The port of the server to which a new connection leads now. @throws if there is none. */
  port: () => Promise<number>;
  close: () => Promise<void>;
}

/**
 * Starts HAProxy in front of both servers with the shipped configuration: only addresses and ports differ.
 * @param options.failedChecks after so many a server is down.
 */
export async function startRedisProxy(
  { servers: [primary, replica] }: RedisPair,
  { failedChecks = 2 } = {},
): Promise<RedisProxy> {
  const port = await freePort();
  const { REDIS_PROXY_PASSWORD } = usualPasswords;
  const haproxy = await startHaproxy({
    config: "deploy/proxy/redis.cfg",
    changes: {
      "bind 127.0.0.1:6379": `bind 127.0.0.1:${port}`,
      "redis-1:6379": `127.0.0.1:${primary.port}`,
      "redis-2:6379": `127.0.0.1:${replica.port}`,
      "fall 2": `fall ${failedChecks}`,
    },
    env: { REDIS_PROXY_PASSWORD },
  });
  const url = Object.assign(new URL(primary.url), { port }).href;
  const proxy = { url, port: () => portBehind(url), close: haproxy.stop };
  try {
    // At first HAProxy takes every server for one that is up.
    await eventually(async () => (await proxy.port()) === primary.port);
    return proxy;
  } catch (error) {
    await proxy.close();
    throw error;
  }
}

async function portBehind(url: string): Promise<number> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 });
  redis.on("error", () => undefined); // The command fails too.
  try {
    await redis.connect();
    return Number(/^tcp_port:(\d+)/m.exec(await redis.info("server"))?.[1]);
  } finally {
    redis.disconnect();
  }
}
