import { Redis } from "ioredis";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { openMetrics } from "../../shared/metrics.ts";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { readWorkerCapacity } from "../../shared/queue/worker-heartbeats.ts";
import { Clock } from "../../shared/redis/clock.ts";
import { startHeartbeat } from "../../worker/heartbeat.ts";
import { ConcurrencyController } from "../../worker/concurrency-controller.ts";
import { engineConfig } from "../harness/fixtures/queries.ts";
import { freshRedis } from "../harness/servers/servers.ts";

const room = { taken: 0, runMs: 1_000, queued: 0, callsWaiting: 0, callsMax: 50, utilization: 0, heapShare: 0 };

/** A Redis with the heartbeats of workers that have room, by their names and providers, and what they logged. */
async function reportingWorkers(providersOf: Record<string, string>) {
  const server = await freshRedis();
  const lines: string[] = [];
  const postgres = { isAway: false, back: () => {} };
  const taking = new Set(Object.keys(providersOf));
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });
  const start = async ([name, SERP_PROVIDERS]: [string, string]) => {
    const config = engineConfig({ SERP_PROVIDERS });
    const redis = new Redis(server.url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
    const [clock, shutdown] = [new Clock(), new Shutdown()];
    const controller = new ConcurrencyController(1_000);
    controller.decide(room);
    const context = { config, clock, redis, shutdown, log, metrics: openMetrics() };
    const pause = () => void taking.delete(name);
    const jobs = { pause, resume: () => void taking.add(name), handBack: async () => {} };
    const postgresCheck = {
      reachesPostgres: () => !postgres.isAway,
      isAway: () => postgres.isAway,
      whenBack: (act: () => void) => void (postgres.back = act),
      isCutOff: async () => false,
    };
    await startHeartbeat(context, name, { controller, average: { runMs: 1_000 }, jobs, postgresCheck }).report();
    return { redis, stop: () => shutdown.run(log) };
  };
  const workers = await Promise.all(Object.entries(providersOf).map(start));
  const reader = new Redis(server.url);
  onTestFinished(async () => {
    for (const { redis } of [...workers, { redis: reader }]) redis.disconnect();
    await server.stop();
  });
  return {
    reader,
    workers,
    postgres,
    taking,
    // The order of the providers is that in which the workers first reported.
    capacity: async () => {
      const capacity = await readWorkerCapacity(reader, Date.now());
      return { ...capacity, providers: capacity.providers?.toSorted() };
    },
    logged: () => lines.map((line) => JSON.parse(line)),
  };
}

test("a worker reports its slots and how many it can raise them to, and stops reporting when it stops", async () => {
  const { reader, workers, capacity, logged } = await reportingWorkers({ one: "sandbox", other: "serper,sandbox" });
  const providers = ["sandbox", "serper"];
  // Each worker reports again every second, so a heartbeat that a busy machine let grow old is followed by another.
  await expect
    .poll(capacity)
    .toEqual({ workers: 2, slots: 64, slotsCeiling: 100, ratePerMs: 0.064, providers, reachesPostgres: true });
  await workers[0]?.stop();
  expect(await reader.hkeys("workers")).toEqual(["other"]);
  await expect.poll(capacity).toMatchObject({ workers: 1, slots: 32 });
  expect(logged()).toEqual([]);
});

test("the providers of the workers are unknown if one of them names none, or one that is unknown here", async () => {
  const { reader, capacity } = await reportingWorkers({ known: "serper" });
  const other = { concurrency: 1, slotsCeiling: 1, runMs: 1, reachesPostgres: true, atMs: Date.now() + 600_000 }; // It reports once and stays recent.
  for (const providers of [undefined, ["serper", "next"]]) {
    await reader.hset("workers", "other", JSON.stringify({ ...other, providers }));
    await expect.poll(capacity).toMatchObject({ workers: 2, providers: undefined });
  }
  await reader.del("workers");
  expect(await capacity()).toMatchObject({ workers: 0, providers: undefined });
});

test("while no worker reaches Postgres, one reports that and takes no searches, and takes them as soon as it is back", async () => {
  const { postgres, taking, capacity } = await reportingWorkers({ one: "sandbox" });
  postgres.isAway = true;
  await expect.poll(capacity).toMatchObject({ workers: 1, reachesPostgres: false });
  expect([...taking]).toEqual([]);
  postgres.isAway = false;
  postgres.back();
  expect([...taking]).toEqual(["one"]);
  await expect.poll(capacity).toMatchObject({ workers: 1, reachesPostgres: true });
});

test("a worker that stops while Redis is unreachable logs a warning and no error", async () => {
  const { workers, logged } = await reportingWorkers({ unreachable: "sandbox" });
  const [worker] = workers;
  worker?.redis.disconnect();
  await worker?.stop();
  expect(logged()).toEqual([expect.objectContaining({ level: 40, msg: "the heartbeat was not removed" })]);
});
