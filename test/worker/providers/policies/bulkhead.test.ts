import { expect, test } from "vitest";
import { type Metrics, openMetrics } from "../../../../shared/metrics.ts";
import { SlotClaims } from "../../../../worker/providers/policies/attempt.ts";
import { Bulkhead } from "../../../../worker/providers/policies/bulkhead.ts";
import type { PageOutcome } from "../../../../worker/providers/provider.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";
import { farMs, held, page } from "./fixtures.ts";

const open = (concurrentCallsMax: number, metrics: Metrics = openMetrics()) =>
  new Bulkhead({ name: "serper", concurrentCallsMax }, metrics);
const claimOf = (organizationId: string, openSearches = 1) => ({ organizationId, openSearches });
const limits = (remainingMs = farMs, stop = new AbortController(), claims = new SlotClaims(claimOf("one"))) => ({
  deadlineAtMs: performance.now() + remainingMs,
  signal: stop.signal,
  claims,
});
const busy = { failure: "busy", outOfTime: true };

test("no more calls run at once than the limit allows; further calls of an organization wait, first come, first served", async () => {
  const bulkhead = open(2);
  let running = 0;
  let most = 0;
  const started: number[] = [];
  const call = (index: number) => async () => {
    started.push(index);
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setImmediate(resolve));
    running -= 1;
    return page();
  };
  await Promise.all([0, 1, 2, 3, 4].map((index) => bulkhead.run(call(index), limits())));
  expect({ most, started }).toEqual({ most: 2, started: [0, 1, 2, 3, 4] });
});

test("a call that gets no slot before its deadline is never made, and ends as busy", async () => {
  const bulkhead = open(1);
  const [first, second] = [held<PageOutcome>(), held<PageOutcome>()];
  const running = bulkhead.run(first.call, limits());
  expect(await bulkhead.run(second.call, limits(20))).toEqual(busy);
  expect(await bulkhead.run(second.call, limits(-1))).toEqual(busy);
  first.end(page());
  expect(await running).toEqual(page());
  expect(await bulkhead.run(async () => page(), limits())).toEqual(page());
  expect(second.calls()).toBe(0);
});

test("a cancelled call stops waiting for a slot", async () => {
  const bulkhead = open(1);
  void bulkhead.run(held<PageOutcome>().call, limits());
  const stop = new AbortController();
  const waiting = bulkhead.run(held<PageOutcome>().call, limits(farMs, stop));
  stop.abort();
  expect(await waiting).toEqual(busy);
});

test("once a call that waited has a slot, its own outcome counts", async () => {
  const bulkhead = open(1);
  const [first, second] = [held<PageOutcome>(), held<PageOutcome>()];
  const stop = new AbortController();
  const running = bulkhead.run(first.call, limits());
  const waiting = bulkhead.run(second.call, limits(farMs, stop));
  first.end(page());
  await running;
  await eventually(async () => second.calls() === 1);
  stop.abort();
  second.end({ failure: "timeout" });
  expect(await waiting).toEqual({ failure: "timeout" });
});

test("a call of searches of several organizations takes the first slot that any of these gets, and counts once", async () => {
  const bulkhead = open(1);
  const first = held<PageOutcome>();
  const running = bulkhead.run(first.call, limits());
  const large = Array.from({ length: 5 }, (_, at) => new SlotClaims(claimOf("large", at + 2)));
  const started: number[] = [];
  const calls = large.map((claims, at) => {
    const call = async () => {
      started.push(at);
      return page();
    };
    return bulkhead.run(call, limits(farMs, undefined, claims));
  });
  // Joining before, twice, and as a large one changes nothing for the calls of others.
  for (const claim of [claimOf("small"), claimOf("small"), claimOf("huge", 50)]) large[4]?.join(claim);
  const left = claimOf("other");
  large[3]?.join(left);
  large[3]?.leave(left);
  expect(bulkhead.waiting).toBe(5);
  first.end(page());
  await Promise.all([running, ...calls]);
  expect(started).toEqual([4, 0, 1, 2, 3]);
  expect(bulkhead.waiting).toBe(0);
});

test("free slots and running calls are visible", async () => {
  const metrics = openMetrics();
  const bulkhead = open(1, metrics);
  const runningCalls = async () => (await metrics.providerCallsRunning.get()).values;
  expect(await runningCalls()).toMatchObject([{ labels: { provider: "serper" }, value: 0 }]);
  const call = held<PageOutcome>();
  const running = bulkhead.run(call.call, limits());
  expect(bulkhead.hasFreeSlot()).toBe(false);
  expect(await runningCalls()).toMatchObject([{ value: 1 }]);
  call.end(page());
  await running;
  expect(bulkhead.hasFreeSlot()).toBe(true);
  expect(await runningCalls()).toMatchObject([{ value: 0 }]);
});

test("each wait for a slot is measured: of calls that start at once, later, and never", async () => {
  const metrics = openMetrics();
  const bulkhead = open(1, metrics);
  const waits = async () => {
    const { values } = await metrics.providerSlotWaitSeconds.get();
    const of = (suffix: string) => values.find(({ metricName }) => metricName?.endsWith(suffix))?.value ?? 0;
    return { count: of("_count"), seconds: of("_sum") };
  };
  const first = held<PageOutcome>();
  const running = bulkhead.run(first.call, limits());
  expect(await waits()).toEqual({ count: 1, seconds: 0 });
  const later = bulkhead.run(async () => page(), limits());
  expect(bulkhead.waiting).toBe(1);
  expect(await bulkhead.run(async () => page(), limits(20))).toEqual(busy);
  const { count, seconds } = await waits();
  expect(count).toBe(2);
  expect(seconds).toBeGreaterThan(0);
  first.end(page());
  await Promise.all([running, later]);
  expect((await waits()).count).toBe(3);
  expect((await waits()).seconds).toBeGreaterThan(2 * seconds);
  expect(bulkhead.waiting).toBe(0);
});

test("a fixed limit stays, whatever the provider answers", async () => {
  const metrics = openMetrics();
  const bulkhead = open(4, metrics);
  await bulkhead.run(async () => ({ failure: "rate_limited" }), limits());
  expect((await metrics.providerCallsLimit.get()).values).toMatchObject([{ labels: { provider: "serper" }, value: 4 }]);
});
