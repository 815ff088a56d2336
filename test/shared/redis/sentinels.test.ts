import type { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { RedisConnections } from "../../../shared/redis/connections.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { startRedisPair } from "../../harness/servers/redis-pair.ts";
import { startSentinels } from "../../harness/servers/sentinels.ts";

/** The connections of a process whose REDIS_URL names Sentinels. The tests build on each other. */

const log = openLog({ name: "test", level: "silent" });
const names = ["serpmill-reads", "serpmill-writes"];

const pair = await startRedisPair();
const sentinels = await startSentinels(pair.servers[0]);
const shutdown = new Shutdown();
const connections = openConnections();
const opened = [connections.openBlocking("reads"), connections.openBlocking("writes")];
await eventually(async () => connections.notReady().length === 0);
afterAll(async () => {
  for (const redis of opened) redis.disconnect();
  await shutdown.run(log);
  await sentinels.close();
  await pair.close();
});

function openConnections(change: (url: string) => string = (url) => url, password?: string): RedisConnections {
  const { REDIS_URL = "", SENTINEL_USERNAME: username, SENTINEL_PASSWORD } = sentinels.settings("api");
  const sentinelLogin = { username, password: password ?? SENTINEL_PASSWORD };
  return new RedisConnections({ url: change(REDIS_URL), sentinelLogin, log, shutdown });
}

/** What a connection says while it finds no primary. */
const complaintOf = async (redis: Redis) =>
  new Promise<string>((resolve) => {
    redis.once("error", ({ message }: Error) => resolve(message));
  });

test.each([
  { what: "a wrong name", change: (url: string) => url.replace("/main", "/other"), names: "REDIS_URL" },
  { what: "a wrong password", password: "canary", names: "SENTINEL_USERNAME and SENTINEL_PASSWORD" },
])("$what is reported with the setting, and without a password", async ({ change, password, names: setting }) => {
  const complaint = await complaintOf(openConnections(change, password).openCommands("test"));
  expect(complaint).toMatch(/^the Sentinel at 127\.0\.0\.1:\d+: /);
  expect(complaint).toContain(setting);
  expect(complaint).not.toMatch(/canary|of-/);
});

test("a frozen Sentinel keeps no connection at the old primary", async () => {
  sentinels.servers[0]?.kill("SIGSTOP");
  await sentinels.switchOver();
  const [old, next] = pair.servers;
  await eventually(async () => (await pair.connectionsAt(next)).length === names.length);
  await eventually(async () => connections.notReady().length === 0);
  expect([await pair.connectionsAt(old), (await pair.connectionsAt(next)).toSorted()]).toEqual([[], names]);
  sentinels.servers[0]?.kill("SIGCONT");
});

test("without any Sentinel a connection that breaks opens anew", async () => {
  for (const server of sentinels.servers) server.kill("SIGKILL");
  await Promise.all(sentinels.servers.map(({ exited }) => exited));
  const [first] = opened;
  await pair.servers[1].operator.call("CLIENT", "KILL", "USER", "api");
  await eventually(async () => first?.status !== "ready");
  expect(await first?.set("{org_1}:balance", "x")).toBe("OK");
  await eventually(async () => connections.notReady().length === 0);
});
