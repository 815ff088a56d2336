import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { actEvery, runPeriodically } from "../../../shared/concurrency/run-periodically.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";

const log = openLog({ name: "test", level: "silent" });

function started(run: () => Promise<void>, pauseMs: number) {
  const metrics = openMetrics();
  const shutdown = new Shutdown();
  const measured = [metrics.holdsOpen];
  runPeriodically({ name: "test", pauseMs, run, measured, log, metrics, shutdown });
  return { metrics, stop: () => shutdown.run(log) };
}

test("the first run begins at once, and runs never overlap", async () => {
  let running = 0;
  let runs = 0;
  let third = () => {};
  const thrice = new Promise<void>((resolve) => (third = resolve));
  const { stop } = started(async () => {
    running += 1;
    expect(running).toBe(1);
    await sleep(5);
    running -= 1;
    runs += 1;
    if (runs === 3) third();
  }, 1);
  expect(running).toBe(1);
  await thrice;
  await stop();
});

test("a run that fails is counted, its gauges are absent, and the next run follows", async () => {
  let runs = 0;
  let second = () => {};
  const twice = new Promise<void>((resolve) => (second = resolve));
  const { metrics, stop } = started(async () => {
    runs += 1;
    if (runs === 2) return second();
    metrics.holdsOpen.set(3);
    throw new Error("Redis is away");
  }, 1);
  await twice;
  await stop();
  expect(await metrics.registry.getSingleMetricAsString("background_errors_total")).toContain('{where="test"} 1');
  expect(await metrics.registry.getSingleMetricAsString("holds_open")).not.toMatch(/^holds_open /m);
});

test("a stopping process waits for the run under way, and not for the pause", async () => {
  let ended = false;
  const { stop } = started(async () => {
    await sleep(20);
    ended = true;
  }, 3_600_000);
  await stop();
  expect(ended).toBe(true);
});

test("work that begins between two ticks of other work with its pause shares the next one", async () => {
  const pauseMs = 60;
  const { promise: shared, resolve } = Promise.withResolvers<boolean>();
  let hasBegun = false;
  let isSameTurn = false;
  let endSecond = () => {};
  const begin = () => {
    endSecond = actEvery(pauseMs, () => resolve(isSameTurn));
  };
  const endFirst = actEvery(pauseMs, () => {
    if (!hasBegun) setTimeout(begin, pauseMs / 4);
    hasBegun = true;
    isSameTurn = true;
    setImmediate(() => (isSameTurn = false));
  });
  expect(await shared).toBe(true);
  endFirst();
  endSecond();
});

test("work with the same pause goes on when other work with it has stopped", async () => {
  const stopped = started(async () => undefined, 2);
  const { promise: hasRun, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const remaining = started(async () => {
    runs += 1;
    if (runs === 3) resolve();
  }, 2);
  await stopped.stop();
  await hasRun;
  await remaining.stop();
  expect(runs).toBeGreaterThanOrEqual(3);
});
