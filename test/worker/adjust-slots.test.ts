import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { newId } from "../../shared/ids.ts";
import { openLog } from "../../shared/log.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { createQueue, queueKeys } from "../../shared/queue/search-queue.ts";
import { withinShareMax } from "../../shared/queue/turns.ts";
import { RedisConnections } from "../../shared/redis/connections.ts";
import { adjustSlots } from "../../worker/adjust-slots.ts";
import { ConcurrencyController } from "../../worker/concurrency-controller.ts";
import type { TakenLease } from "../../worker/engine/flight-leases.ts";
import { type JobHandlers, JobLoop } from "../../worker/job-loop.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { searchJob } from "../harness/fixtures/queries.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

const log = openLog({ name: "test", level: "silent" });
const beyondShare = withinShareMax + 1;

/** Workers whose searches end with the test, and a queue to them. Without `slots` nothing adjusts theirs. */
async function openWorkers(count: number, { runsAtFirst, slots }: { runsAtFirst: number; slots?: number }) {
  const { redis, server } = await openFreshRedis(onTestFinished);
  const shutdown = new Shutdown();
  const connections = new RedisConnections({ url: server.url, log, shutdown });
  const queue = createQueue(redis);
  const ended = Promise.withResolvers<void>();
  const started: string[] = [];
  /** What the workers have sent on the connections on which they take searches, and how much of it before each search began. */
  const sent: string[] = [];
  const sentAtStart: number[] = [];
  const failed: Error[] = [];
  const leases: (TakenLease | undefined)[] = [];
  const open = connections.openBlocking.bind(connections);
  connections.openBlocking = (name) => {
    const connection = open(name);
    const send = connection.sendCommand.bind(connection);
    connection.sendCommand = (command, stream) => {
      if (name === "worker-takes") sent.push(command.name);
      return send(command, stream);
    };
    return connection;
  };
  const metrics = openMetrics();
  const loops: JobLoop[] = [];
  onTestFinished(async () => {
    ended.resolve();
    await Promise.all(loops.map((loop) => loop.stop()));
    await queue.close();
    await shutdown.run(log);
  });
  const enqueue = async (searches: number, turn: number, fields: { flight?: string } = {}) => {
    const ids = Array.from({ length: searches }, () => newId("req"));
    for (const requestId of ids)
      await queue.add("search", searchJob({ requestId, ...fields }), {
        jobId: requestId,
        ...(turn > 0 && { priority: turn }),
      });
    return ids;
  };
  await enqueue(count * runsAtFirst, beyondShare);
  for (let workers = 1; workers <= count; workers += 1) {
    const run: JobHandlers["run"] = ({ requestId }, { lease }) => {
      started.push(requestId);
      leases.push(lease);
      sentAtStart.push(sent.length);
      return ended.promise;
    };
    const handlers = {
      run,
      failed: (error: Error) => {
        failed.push(error);
        return ended.promise;
      },
    };
    const parts = { connections, redis, metrics, log };
    const loop = new JobLoop(parts, handlers, { workerId: `worker ${workers}`, concurrency: runsAtFirst });
    loops.push(loop);
    await loop.start();
    await eventually(async () => started.length === workers * runsAtFirst);
    if (slots === undefined) continue;
    const google = { callsWaiting: () => 1, callsMax: () => 1 };
    const measured = { jobs: loop, average: { runMs: 1_000 }, google, changed: async () => undefined };
    adjustSlots({ redis, metrics, log, shutdown }, new ConcurrencyController(slots), measured);
    loop.setConcurrency(slots);
  }
  return { redis, queue, loops, started, failed, leases, sent, sentAtStart, enqueue, end: () => ended.resolve() };
}

test("workers with all slots taken take an organization's only search and no search beyond shares, however many searches run", async () => {
  const { redis, loops, started, enqueue } = await openWorkers(2, { runsAtFirst: 5, slots: 1 });
  await enqueue(3, beyondShare);
  for (let organizations = 0; organizations < 2; organizations += 1) {
    const [only = ""] = await enqueue(1, 0);
    await eventually(async () => started.includes(only));
  }
  for (const loop of loops) await loop.takeOnTop(1); // Finds none, behind all that was taken before.
  expect(started).toHaveLength(10 + 2);
  expect(await redis.zcard(queueKeys.waitingByTurn)).toBe(3);
});

test("a worker that takes more on top than still wait takes none by its turn, and leaves the order of those as it is", async () => {
  const { redis, loops, started, enqueue } = await openWorkers(1, { runsAtFirst: 1, slots: 1 });
  const earlier = await enqueue(2, beyondShare);
  await loops[0]?.takeOnTop(3);
  expect(started).toHaveLength(1);
  const later = await enqueue(1, beyondShare);
  expect(await redis.zrange(queueKeys.waitingByTurn, 0, "-1")).toEqual([...earlier, ...later]);
});

test("a worker whose searches end while it looks for more on top takes the next one", async () => {
  const { redis, loops, started, enqueue, end } = await openWorkers(1, { runsAtFirst: 1, slots: 1 });
  const [loop] = loops;
  // Redis answers once the search has ended.
  await redis.client("PAUSE", 600_000, "WRITE");
  const looking = loop?.takeOnTop(1);
  end();
  await eventually(async () => loop?.running === 0);
  await redis.client("UNPAUSE");
  await looking;
  const [next = ""] = await enqueue(1, beyondShare);
  await eventually(async () => started.length === 2);
  expect(started).toContain(next);
});

test("a worker takes as many searches within shares on top as it has slots at least, and then still only searches", async () => {
  const { redis, started, enqueue } = await openWorkers(1, { runsAtFirst: 2, slots: 2 });
  const within = await enqueue(3, 1);
  await eventually(async () => within.slice(0, 2).every((id) => started.includes(id)));
  const [only = ""] = await enqueue(1, 0);
  await eventually(async () => started.includes(only));
  expect(started).not.toContain(within[2]);
  expect(await redis.zcard(queueKeys.waitingByTurn)).toBe(1);
});

/** Whether this connection waits for a search. */
const isWaiting = async (redis: Redis, name: string) =>
  new RegExp(` name=${name} .* flags=b `).test(String(await redis.call("CLIENT", "LIST")));

/** A worker that waits for a second search. */
async function openWaitingWorker() {
  const workers = await openWorkers(1, { runsAtFirst: 1 });
  const [loop] = workers.loops;
  loop?.setConcurrency(2);
  await eventually(() => isWaiting(workers.redis, "serpmill-worker-takes"));
  return { ...workers, loop };
}

test("a search that comes while a worker waits is with that worker before it sends anything", async () => {
  const { enqueue, started, sentAtStart, sent } = await openWaitingWorker();
  const sentBefore = sent.length;
  await enqueue(1, beyondShare);
  await eventually(async () => started.length === 2);
  expect(sentAtStart[1]).toBe(sentBefore);
});

test.each([
  ["has no slot any more", (loop: JobLoop | undefined) => loop?.setConcurrency(1)],
  ["takes none any more", (loop: JobLoop | undefined) => loop?.pause()],
])(
  "a worker that waits for a search, and %s when one is added, leaves it to another that waits",
  async (_title, act) => {
    const { loop, redis, started, enqueue } = await openWaitingWorker();
    act(loop);
    const other = redis.duplicate({ connectionName: "other" });
    onTestFinished(() => other.disconnect());
    // Behind the first worker, which gets the marker of the search.
    const woken = other.bzpopmin(queueKeys.marker, 5);
    await eventually(() => isWaiting(redis, "other"));
    const ids = await enqueue(1, beyondShare, { flight: "one" });
    expect(await woken).not.toBeNull();
    expect(await redis.exists("lease:one")).toBe(0);
    expect(await redis.zrange(queueKeys.waitingByTurn, 0, "-1")).toEqual(ids);
    expect(started).toHaveLength(1);
  },
);

test("a worker that stops while it waits leaves a search that comes to others", async () => {
  const { loop, redis, enqueue, end } = await openWaitingWorker();
  end();
  await eventually(async () => loop?.running === 0 && (await isWaiting(redis, "serpmill-worker-takes")));
  const [ids] = await Promise.all([enqueue(1, beyondShare), loop?.stop()]);
  expect(await redis.lrange(queueKeys.running, 0, -1)).toEqual([]);
  expect(await redis.zrange(queueKeys.waitingByTurn, 0, "-1")).toEqual(ids);
});

test("a worker acquires the lease of a flight with a search of it, unless Redis has a record of the flight", async () => {
  const { loop, redis, started, leases, enqueue } = await openWaitingWorker();
  const [first] = await enqueue(1, beyondShare, { flight: "one" });
  await eventually(async () => started.length === 2);
  expect(await redis.hgetall("lease:one")).toEqual({ holder: `${first}:1` });
  expect(await redis.persist("lease:one")).toBe(1); // From now on it does not expire.
  loop?.setConcurrency(3);
  await enqueue(1, beyondShare, { flight: "one" });
  await eventually(async () => started.length === 3);
  expect(leases.map((lease) => lease?.use("one"))).toEqual([undefined, `${first}:1`, undefined]);
});

test("a worker that ends a search and takes the next one in one step acquires its lease as well", async () => {
  const { loops, started, leases, enqueue, end } = await openWorkers(1, { runsAtFirst: 1 });
  await enqueue(1, 0, { flight: "one" });
  loops[0]?.resume(); // It knows that one waits, and takes it as the first one ends.
  end();
  await eventually(async () => started.length === 2);
  expect(leases[1]).toBeDefined();
});

test("a lease that no flight uses is released when its search ends", async () => {
  const { redis, started, enqueue, end } = await openWaitingWorker();
  await enqueue(1, beyondShare, { flight: "one" });
  await eventually(async () => started.length === 2);
  expect(await redis.persist("lease:one")).toBe(1); // It does not expire.
  end();
  await eventually(async () => (await redis.exists("lease:one")) === 0);
});

test("a job that is no search is taken without a lease", async () => {
  const { redis, queue, started, failed } = await openWaitingWorker();
  await queue.add("search", { flight: 1 });
  await queue.add("search", "no search");
  await eventually(async () => failed.length === 2);
  expect(started).toHaveLength(1);
  expect(await redis.keys("lease:*")).toEqual([]);
});
