import { once } from "node:events";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../../shared/process/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { openCommands, whenReady } from "../../../shared/redis/connect.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

const log = openLog({ name: "test", level: "silent" });

test("many concurrent writes that a replica refuses cost one reconnection, and no warning on stderr", async () => {
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

  const redis = openCommands({ url: server.url, name: "test", log, shutdown });
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
});
