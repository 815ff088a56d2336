import { Redis } from "ioredis";
import { afterAll, beforeEach, expect, test } from "vitest";
import { Script } from "../../../shared/redis/script.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const script = new Script("push", new URL("script.lua", import.meta.url));

const { redis, server } = await openFreshRedis(afterAll);
beforeEach(async () => {
  await redis.flushall();
  await redis.config("RESETSTAT");
});

const push = (list: string, value: string | Buffer) => script.run(redis, [list], [value]);

async function commandsRun(): Promise<number> {
  const stats = await redis.info("commandstats");
  return [...stats.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)].reduce((sum, [, calls]) => sum + Number(calls), 0);
}

test("calls of one turn share a command, and each gets its own reply in the order of the calls", async () => {
  const replies = await Promise.all(["a", "b", "c"].map((value) => push("list", value)));
  expect(replies).toEqual([
    ["pushed", 1],
    ["pushed", 2],
    ["pushed", 3],
  ]);
  expect(await redis.lrange("list", 0, -1)).toEqual(["a", "b", "c"]);
  expect(await commandsRun()).toBe(1);
});

test("a call that fails stops no other call of its command", async () => {
  await redis.set("text", "not a list");
  const calls = [
    push("list", "a"),
    push("text", "b"),
    push("list", "broken"),
    push("list", "quiet"),
    push("list", "c"),
  ];
  const [first, refused, broken, quiet, last] = await Promise.allSettled(calls);
  expect(first).toMatchObject({ status: "fulfilled", value: ["pushed", 1] });
  expect(refused).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/^WRONGTYPE /) } });
  expect(broken).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/broken/) } });
  expect(quiet).toEqual({ status: "fulfilled", value: null });
  expect(last).toMatchObject({ status: "fulfilled", value: ["pushed", 3] });
  expect(await commandsRun()).toBe(1);
});

test("a command has a bounded number of calls and of bytes", async () => {
  await Promise.all(Array.from({ length: 130 }, (_, at) => push("many", String(at))));
  expect(await redis.llen("many")).toBe(130);
  expect(await commandsRun()).toBe(3);
  await redis.config("RESETSTAT");
  await Promise.all(Array.from({ length: 4 }, () => push("large", Buffer.alloc(400_000))));
  expect(await redis.llen("large")).toBe(4);
  expect(await commandsRun()).toBe(2);
});

test("a call may have very many arguments, as the end of very many searches has", async () => {
  const values = Array.from({ length: 20_000 }, () => "a");
  expect(await script.run(redis, ["list"], values)).toEqual(["pushed", 1]);
});

test("every call is rejected if the connection is closed", async () => {
  const closed = new Redis(server.url, { enableOfflineQueue: false, retryStrategy: () => null, lazyConnect: true });
  closed.on("error", () => undefined);
  const calls = [1, 2].map(() => script.run(closed, ["list"], ["a"]));
  closed.disconnect();
  for (const call of await Promise.allSettled(calls)) expect(call.status).toBe("rejected");
});

test("a server that takes no writes refuses the whole command, so that the connection moves to another", async () => {
  const refusals: string[] = [];
  const moving = new Redis(server.url, { reconnectOnError: ({ message }) => refusals.push(message) > 0 });
  moving.on("error", () => undefined);
  await redis.replicaof("127.0.0.1", "1");
  try {
    const calls = [1, 2].map(() => script.run(moving, ["list"], ["a"]));
    for (const call of await Promise.allSettled(calls)) {
      expect(call).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/^READONLY /) } });
    }
    expect(refusals).toEqual([expect.stringMatching(/^READONLY /)]);
  } finally {
    await redis.replicaof("NO", "ONE");
    moving.disconnect();
  }
  expect(await push("list", "a")).toEqual(["pushed", 1]);
});

test("a call that nothing waits for leaves with the next script on its connection, or alone after its time", async () => {
  const soon = script.runWithNext(redis, ["list"], ["a"], 60_000);
  await push("list", "b");
  await soon;
  expect(await commandsRun()).toBe(1);
  expect((await redis.lrange("list", 0, -1)).toSorted()).toEqual(["a", "b"]);
  expect(await script.runWithNext(redis, ["list"], ["c"], 1)).toEqual(["pushed", 3]);
});
