import { once } from "node:events";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { awaitReady, whenReady } from "../../../shared/redis/connect.ts";
import { reconnectAfterMs, RedisConnections } from "../../../shared/redis/connections.ts";
import { startProxy } from "../../harness/servers/proxy.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

const log = openLog({ name: "test", level: "silent" });

test.each(["commands", "the queue"])(
  "many concurrent writes that a replica refuses to a connection for %s cost one reconnection, and no warning",
  async (use) => {
    const server = await freshRedis();
    const shutdown = new Shutdown();
    const operator = new Redis(server.url);
    onTestFinished(async () => {
      await shutdown.run(log);
      operator.disconnect();
      await server.stop();
    });
    const warnings: string[] = [];
    const note = (warning: Error) => warnings.push(warning.message);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));

    const connections = new RedisConnections({ url: server.url, log, shutdown });
    // BullMQ works with a copy of the connection that it gets.
    const redis = use === "commands" ? connections.openCommands("test") : connections.openBlocking("test").duplicate();
    onTestFinished(() => redis.disconnect());
    await whenReady(redis, 5_000);
    await operator.replicaof("127.0.0.1", 1);
    const refused = once(redis, "close");
    const writes = Promise.allSettled(Array.from({ length: 20 }, (_, n) => redis.set(`key-${n}`, "x")));
    await refused;
    await operator.replicaof("no", "one");
    await writes;
    await whenReady(redis, 5_000);
    expect(await redis.set("key", "x")).toBe("OK");
    expect(warnings).toEqual([]);
  },
);

test("a Redis that accepts connections and never answers is tried again, and used once it answers", async () => {
  const server = await freshRedis();
  const proxy = await startProxy(server.url);
  const shutdown = new Shutdown();
  onTestFinished(async () => {
    await shutdown.run(log);
    await proxy.close();
    await server.stop();
  });
  proxy.silence("replies");
  const connections = new RedisConnections({ url: proxy.url, log, shutdown });
  const redis = connections.openCommands("test");
  await new Promise((resolve) => redis.once("close", resolve));
  expect(connections.notReady()).toEqual(["test"]);
  proxy.mend();
  await awaitReady(redis, "test", log);
  expect(connections.notReady()).toEqual([]);
  expect(await redis.ping()).toBe("PONG");
});

test("processes that lost Redis together come back apart, and each within a second", () => {
  for (const attempt of [1, 3, 10, 1_000]) {
    const [soonest, latest] = [reconnectAfterMs(attempt, 0), reconnectAfterMs(attempt, 1)];
    expect(latest).toBe(2 * soonest);
    expect(latest).toBeLessThanOrEqual(1_000);
  }
});
