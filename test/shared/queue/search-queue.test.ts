import { afterAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { openSearchQueue, queueKeys } from "../../../shared/queue/search-queue.ts";
import { awaitReady } from "../../../shared/redis/connect.ts";
import { RedisConnections } from "../../../shared/redis/connections.ts";
import { searchJob } from "../../harness/fixtures/queries.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";

const log = openLog({ name: "test", level: "silent" });
const { redis, server } = await openFreshRedis(afterAll);
const shutdown = new Shutdown();
const connections = new RedisConnections({ url: server.url, log, shutdown });
const openQueue = () => openSearchQueue({ connections, metrics: openMetrics(), log, shutdown });
const queue = await openQueue();
afterAll(() => shutdown.run(log));
beforeEach(() => redis.flushall());

const enqueue = (requestId: string, turn: number) => queue.enqueue(searchJob({ requestId }), turn);
const readsOfRedis = async () => Number(/^total_reads_processed:(\d+)/m.exec(await redis.info("stats"))?.[1]);

test("searches that are admitted together reach Redis together, in their order", async () => {
  const ids = Array.from({ length: 12 }, (_, at) => `req_${at}`);
  const before = await readsOfRedis();
  await Promise.all(ids.map((id) => enqueue(id, 0)));
  expect((await readsOfRedis()) - before).toBeLessThan(ids.length);
  expect(await redis.lrange(queueKeys.waiting, 0, -1)).toEqual(ids.toReversed());
});

test("a search that Redis refuses is not enqueued, and those that were admitted with it are", async () => {
  await redis.set(queueKeys.waitingByTurn, "not the searches by their turn");
  const [first, refused, last] = await Promise.allSettled([
    enqueue("first", 0),
    enqueue("refused", 1),
    enqueue("last", 0),
  ]);
  expect(first.status).toBe("fulfilled");
  expect(refused).toMatchObject({ status: "rejected", reason: { message: expect.stringMatching(/WRONGTYPE /) } });
  expect(last.status).toBe("fulfilled");
  expect(await redis.lrange(queueKeys.waiting, 0, -1)).toEqual(["last", "first"]);
});

test("a queue that is opened while Redis does not say its version takes searches", async () => {
  const connection = connections.openCommands("queue");
  await awaitReady(connection, "queue", log);
  vi.spyOn(connections, "openCommands").mockReturnValueOnce(connection);
  await redis.acl("SETUSER", "default", "-info");
  onTestFinished(() => void redis.acl("SETUSER", "default", "+info"));
  const opened = await openQueue();
  await opened.enqueue(searchJob({ requestId: "early" }), 0);
  expect(await redis.lrange(queueKeys.waiting, 0, -1)).toEqual(["early"]);
});
