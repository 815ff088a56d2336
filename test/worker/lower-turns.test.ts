import { afterAll, beforeEach, expect, test } from "vitest";
import { readBacklog } from "../../shared/queue/backlog.ts";
import { createQueue, queueKeys } from "../../shared/queue/search-queue.ts";
import { turnOf, withinShareMax } from "../../shared/queue/turns.ts";
import { lowerTurns } from "../../worker/lower-turns.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const { redis } = await openFreshRedis(afterAll);
const queue = createQueue(redis);
afterAll(() => queue.close());
beforeEach(() => redis.flushall());

const enqueue = (jobId: string, priority: number) => queue.add("search", {}, { jobId, priority });
const waiting = () => redis.zrange(queueKeys.waitingByTurn, 0, "-1");
const comingTurn = async () => (await readBacklog(redis)).turn;

test("a small organization goes before a large one also after two million rounds in which searches waited without a break", async () => {
  let turn = withinShareMax;
  for (let rounds = 0; rounds < 2 ** 21; rounds += 5_000) {
    await enqueue("large", turnOf(5_001, { share: 1, comingTurn: turn }));
    await enqueue("small", turnOf(2, { share: 1, comingTurn: turn }));
    await lowerTurns(redis);
    expect(await waiting()).toEqual(["small", "large"]);
    await queue.remove("small");
    turn = await comingTurn();
    await queue.remove("large");
  }
});

const half = withinShareMax + 1 + 2 ** 19;

test("turns are lowered together once the next one is high, and those within shares stay", async () => {
  const turns = { within: 3, next: half - 1, second: half, last: half + 400 };
  for (const [id, turn] of Object.entries(turns)) await enqueue(id, turn);
  expect(await lowerTurns(redis)).toBe(0);
  await queue.remove("next");
  expect(await lowerTurns(redis)).toBe(2);
  expect(await waiting()).toEqual(["within", "second", "last"]);
  expect(await comingTurn()).toBe(withinShareMax + 1);
});

test("a search that was enqueued with a turn from before they were lowered gets to its place", async () => {
  for (const [id, turn] of Object.entries({ first: half + 10, last: half + 30 })) await enqueue(id, turn);
  expect(await lowerTurns(redis)).toBe(2);
  await enqueue("middle", half + 20);
  expect(await lowerTurns(redis)).toBe(1);
  expect(await waiting()).toEqual(["first", "middle", "last"]);
});
