import type { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { RedisConnections } from "../../../shared/redis/connections.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { withoutHaproxy } from "../../harness/servers/haproxy.ts";
import { type RedisPair, startRedisPair } from "../../harness/servers/redis-pair.ts";
import { type RedisProxy, startRedisProxy } from "../../harness/servers/redis-proxy.ts";
import { usualPasswords } from "../../harness/servers/redis-users.ts";

/** The connections of a process behind HAProxy with the shipped configuration. The tests build on each other. */

const log = openLog({ name: "test", level: "silent" });
const names = ["serpmill-reads", "serpmill-writes"];

describe.skipIf(withoutHaproxy !== "")(`behind HAProxy${withoutHaproxy}`, () => {
  let pair: RedisPair;
  let proxy: RedisProxy;
  let shutdown: Shutdown;
  let connections: RedisConnections;
  let opened: Redis[];
  beforeAll(async () => {
    pair = await startRedisPair();
    proxy = await startRedisProxy(pair, { failedChecks: 4 }); // On a busy machine two checks fail now and then.
    shutdown = new Shutdown();
    const login = { username: "api", password: usualPasswords.REDIS_API_PASSWORD };
    connections = new RedisConnections({ url: Object.assign(new URL(proxy.url), login).href, log, shutdown });
    opened = [connections.openBlocking("reads"), connections.openBlocking("writes")];
    await eventually(async () => (await areAllAt(0)) && connections.notReady().length === 0);
  });
  afterAll(async () => {
    for (const redis of opened) redis.disconnect();
    await shutdown.run(log);
    await proxy.close();
    await pair.close();
  });

  const areAllAt = async (at: 0 | 1) =>
    (await pair.connectionsAt(pair.servers[at])).toSorted().join() === names.join() &&
    (await pair.connectionsAt(pair.servers[at === 0 ? 1 : 0])).length === 0;

  test("all connections follow the promoted replica", async () => {
    const [old, next] = pair.servers;
    await next.operator.replicaof("no", "one");
    await old.operator.replicaof("127.0.0.1", next.port);
    await eventually(async () => (await areAllAt(1)) && connections.notReady().length === 0);
    expect(await opened[1]?.set("{org_1}:balance", "x")).toBe("OK");
  });

  test("an old primary that comes back as one gets no connection, until the promoted one is gone", async () => {
    const [old, next] = pair.servers;
    await old.operator.replicaof("no", "one");
    // Longer than HAProxy needs to find it up: it has asked both servers several times.
    const checksOf = async () => Number(/cmdstat_auth:calls=(\d+)/.exec(await old.operator.info("commandstats"))?.[1]);
    const before = await checksOf();
    await eventually(async () => (await checksOf()) > before + 5);
    expect(await areAllAt(1)).toBe(true);
    expect(await proxy.port()).toBe(next.port);

    next.kill("SIGSTOP");
    await eventually(async () => (await pair.connectionsAt(old)).length === names.length);
    next.kill("SIGCONT");
    await eventually(() => areAllAt(0));
    expect(await pair.refusals()).toEqual([]);
  });
});
