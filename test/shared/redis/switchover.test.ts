import { once } from "node:events";
import { setImmediate } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { announceDisconnected, subscribeToDisconnected } from "../../../shared/queue/disconnected-searches.ts";
import { RedisConnections } from "../../../shared/redis/connections.ts";
import type { LocalServer } from "../../../local/local-server.ts";
import { startRedis } from "../../../local/redis.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { type Proxy, startProxy } from "../../harness/servers/proxy.ts";

/** Two Redis servers behind an address that moves. Connections that are open stay where they are. */
const log = openLog({ name: "test", level: "silent" });
const names = ["reads", "writes", "subscribes"];

interface Server extends LocalServer {
  operator: Redis;
}

let old: Server;
let next: Server;
let address: Proxy;
let shutdown: Shutdown;
let connections: RedisConnections;
let opened: Redis[];
let subscriber: Redis;
/** The announcements that the subscriber has heard. */
let heard: string[];
beforeEach(async () => {
  [old, next] = await Promise.all([startServer(), startServer()]);
  address = await startProxy(old.url);
  shutdown = new Shutdown();
  connections = new RedisConnections({ url: address.url, log, shutdown });
  subscriber = connections.openBlocking("subscribes");
  opened = [connections.openBlocking("reads"), connections.openBlocking("writes"), subscriber];
  vi.spyOn(connections, "openBlocking").mockReturnValueOnce(subscriber);
  heard = [];
  subscribeToDisconnected({ connections, log }, (requestId) => heard.push(requestId));
  await eventually(async () => (await allAt(old)) && connections.notReady().length === 0);
});
afterEach(async () => {
  await shutdown.run(log);
  await address.close();
  for (const { operator, stop } of [old, next]) {
    operator.disconnect();
    await stop();
  }
});

async function startServer(): Promise<Server> {
  const server = await startRedis();
  return { ...server, operator: new Redis(server.url) };
}

/** The connections that a server has, by their names. */
async function namesAt({ operator }: Server): Promise<string[]> {
  const list = String(await operator.call("CLIENT", "LIST"));
  return names.filter((name) => list.includes(`name=serpmill-${name} `));
}

const allAt = async (server: Server) => (await namesAt(server)).length === names.length;

test("a connection that only reads leaves a primary that becomes a replica, and a subscriber subscribes again", async () => {
  await next.operator.replicaof("127.0.0.1", old.port);
  for (const [from, to] of [
    [old, next],
    [next, old],
  ] as const) {
    await to.operator.replicaof("no", "one");
    address.lead(to.url);
    await from.operator.replicaof("127.0.0.1", to.port);
    await eventually(() => allAt(to));
    await eventually(async () => connections.notReady().length === 0);
    await expect.poll(() => namesAt(from)).toEqual([]);
    await eventually(async () => String(await to.operator.call("CLIENT", "LIST", "TYPE", "pubsub")) !== "");
    await announceDisconnected(to.operator, `req_at_${to.port}`);
    await eventually(async () => heard.at(-1) === `req_at_${to.port}`);
  }
});

test("a process that stops just as a subscriber is back ends without an error", async () => {
  const isBack = once(subscriber, "ready");
  // It may not have subscribed yet.
  await eventually(async () => Number(await old.operator.call("CLIENT", "KILL", "TYPE", "pubsub")) > 0);
  await isBack;
  address.silence("replies");
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const hasEnded = once(subscriber, "end");
  await shutdown.run(log);
  await hasEnded;
  await setImmediate();
  expect(unhandled).toEqual([]);
});

test("no connection stays at a replica while the address leads there, and each is used once there is a primary", async () => {
  await old.operator.replicaof("127.0.0.1", next.port);
  await eventually(async () => connections.notReady().length === names.length);
  await old.operator.replicaof("no", "one");
  await eventually(async () => connections.notReady().length === 0);
  expect(await allAt(old)).toBe(true);
});

test("where one connection finds another primary, all others follow it", async () => {
  address.lead(next.url);
  await old.operator.call("CLIENT", "KILL", "ID", String(await opened[0]?.client("ID")));
  await eventually(() => allAt(next));
  await eventually(async () => connections.notReady().length === 0);
  await expect.poll(() => namesAt(old)).toEqual([]);
});

test("an address that leads to two primaries in turn makes a process unready, and breaks no connection all the time", async () => {
  let connected = 0;
  for (const redis of opened) {
    redis.on("connect", () => {
      connected += 1;
      address.lead(connected % 2 === 0 ? next.url : old.url);
    });
  }
  address.lead(next.url);
  await old.operator.call("CLIENT", "KILL", "ID", String(await opened[0]?.client("ID")));
  const isDivided = async () => connected === names.length && opened.every(({ status }) => status === "ready");
  await eventually(isDivided);
  await eventually(async () => connections.notReady().length > 0);
  for (let count = 0; count < 100; count += 1) await Promise.all(opened.map((redis) => redis.ping()));
  expect(connected).toBe(names.length);

  for (const redis of opened) redis.removeAllListeners("connect");
  address.lead(next.url);
  await eventually(() => allAt(next));
  await eventually(async () => connections.notReady().length === 0);
});

test("a connection that the client library has ended is an uncaught error, which ends a process; one that we close is none", async () => {
  const listeners = process.listeners("uncaughtException");
  process.removeAllListeners("uncaughtException");
  const uncaught = once(process, "uncaughtException");
  const [first, second] = opened;
  if (!first || !second) throw new Error("no connections");
  second.disconnect();
  await once(second, "end");
  Redis.prototype.disconnect.call(first);
  const [error] = await uncaught;
  for (const listener of listeners) process.on("uncaughtException", listener);
  expect(error).toMatchObject({ message: "the Redis connection reads has ended" });
});
