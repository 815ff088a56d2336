import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import { SlotClaims } from "../../../../worker/providers/policies/attempt.ts";
import { Bulkhead } from "../../../../worker/providers/policies/bulkhead.ts";
import type { Failure, PageOutcome } from "../../../../worker/providers/provider.ts";
import { farMs, page } from "./fixtures.ts";

/** A bulkhead whose limit finds itself. Its calls end when the test says so, and the test moves the clock. */

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const refused: Failure = { failure: "rate_limited" };
const unavailable: Failure = { failure: "unavailable", overloaded: true };
const timedOut: Failure = { failure: "timeout" };

function openBulkhead() {
  const metrics = openMetrics();
  const bulkhead = new Bulkhead({ name: "serper", concurrentCallsMax: "adaptive" }, metrics);
  const running: ((outcome: PageOutcome) => void)[] = [];
  const call = () => new Promise<PageOutcome>((resolve) => running.push(resolve));
  const settled = () => vi.advanceTimersByTimeAsync(0);
  /** Starts calls, as far as the limit allows. */
  const start = async (count: number, organizationId = "one") => {
    const claims = new SlotClaims({ organizationId, openSearches: 1 });
    const wait = { deadlineAtMs: performance.now() + farMs, signal: new AbortController().signal, claims };
    for (let started = 0; started < count; started += 1) void bulkhead.run(call, wait);
    await settled();
  };
  /** Ends the oldest running call. */
  const end = async (outcome: PageOutcome = page()) => {
    running.shift()?.(outcome);
    await settled();
  };
  const endAll = async (outcome: PageOutcome = page()) => {
    for (const finish of running.splice(0)) finish(outcome);
    await settled();
  };
  const limit = async () => (await metrics.providerCallsLimit.get()).values[0]?.value;
  /** Lets the limit fall from 50 to 33, with no call left. */
  const fall = async () => {
    await start(1);
    await end(refused);
    expect(await limit()).toBe(33);
  };
  return { start, end, endAll, limit, fall, running: () => running.length };
}

const pass = (seconds: number) => vi.advanceTimersByTimeAsync(seconds * 1_000);

describe("the limit of calls at once", () => {
  test("doubles while calls wait, although none ends: once after 50 ms, and then each second up to 1,000", async () => {
    const { start, limit, running } = openBulkhead();
    await start(2_000);
    expect(await limit()).toBe(50);
    await pass(0.05);
    const seen: unknown[] = [];
    for (let second = 0; second <= 5; second += 1) {
      seen.push([await limit(), running()]);
      await pass(1);
    }
    expect(seen).toEqual([100, 200, 400, 800, 1_000, 1_000].map((calls) => [calls, calls]));
  });

  test("doubles each 50 ms while calls wait and those that began at the limit are answered", async () => {
    const { start, endAll, limit } = openBulkhead();
    await start(5_000);
    const seen: unknown[] = [];
    for (let steps = 0; steps < 6; steps += 1) {
      await pass(0.05);
      seen.push(await limit());
      await endAll();
    }
    expect(seen).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  test("falls at once to the calls that the provider has answered, when doubling took it far beyond them", async () => {
    const { start, end, limit } = openBulkhead();
    await start(1_000);
    await pass(0.05);
    for (let calls = 0; calls < 51; calls += 1) await end(); // The last one began as the 51st at once.
    await pass(2.5);
    expect(await limit()).toBe(400);
    await end(refused);
    expect(await limit()).toBe(51);
  });

  test("stays while it is not used up", async () => {
    const { start, endAll, limit } = openBulkhead();
    await start(49);
    await pass(10);
    expect(await limit()).toBe(50);
    await start(1);
    await endAll(); // It was used up for a moment only.
    await pass(10);
    expect(await limit()).toBe(50);
  });

  test("doubles when a call had to wait, although slots are free in the moment of the decision", async () => {
    const { start, endAll, limit } = openBulkhead();
    await start(51);
    await endAll();
    await endAll();
    await pass(1);
    expect(await limit()).toBe(100);
    await pass(5);
    expect(await limit()).toBe(100);
  });

  test.each<[string, Failure, excused: number]>([
    ["a 429", refused, 0],
    ["the eleventh 503", unavailable, 10],
    ["the eleventh time-out", timedOut, 10],
  ])("falls by a third after %s, and then rises by one a second while it is used up", async (_, outcome, excused) => {
    const { start, end, endAll, limit } = openBulkhead();
    await start(40);
    for (let calls = 0; calls < excused; calls += 1) await end(outcome);
    expect(await limit()).toBe(50);
    await end(outcome);
    expect(await limit()).toBe(33);
    await endAll();
    await start(100);
    await pass(1);
    expect(await limit()).toBe(34);
    await pass(3);
    expect(await limit()).toBe(37);
    await endAll();
    await endAll();
    await endAll();
    await pass(5);
    expect(await limit()).toBeLessThanOrEqual(38);
  });

  test.each<[string, PageOutcome]>([
    ["an answer", page()],
    ["a provider that cannot be reached", { failure: "unavailable" }],
    ["a time-out for lack of time", { failure: "timeout", outOfTime: true }],
    ["an empty account", { failure: "account_refused" }],
  ])("does not fall after %s", async (_, outcome) => {
    const { start, endAll, limit } = openBulkhead();
    await start(40);
    await endAll(outcome);
    expect(await limit()).toBe(50);
  });

  test("does not fall for a twentieth of the calls, whatever the load", async () => {
    const { start, end, endAll, limit } = openBulkhead();
    const fail = async (calls: number) => {
      await start(calls);
      for (let failed = 0; failed < calls; failed += 1) await end(unavailable);
    };
    await fail(10);
    for (let rounds = 0; rounds < 10; rounds += 1) {
      await start(20);
      await endAll();
      await fail(1);
    }
    expect(await limit()).toBe(50);
    await start(19);
    await endAll();
    await fail(1);
    expect(await limit()).toBe(33);
  });

  test("falls for the eleventh failed call in a row, however many were answered before", async () => {
    const { start, end, endAll, limit } = openBulkhead();
    for (let rounds = 0; rounds < 50; rounds += 1) {
      await start(20);
      await endAll();
    }
    await start(11);
    for (let calls = 0; calls < 10; calls += 1) await end(timedOut);
    expect(await limit()).toBe(50);
    await end(timedOut);
    expect(await limit()).toBe(33);
  });

  describe("while calls of others are answered", () => {
    /** Calls that end with a 503, one after the other, each by the next of these organizations. */
    const fail = async ({ start, end }: ReturnType<typeof openBulkhead>, calls: number, ...by: string[]) => {
      for (let call = 0; call < calls; call += 1) {
        await start(1, by[call % by.length]);
        await end(unavailable);
      }
    };
    const answer = async ({ start, endAll }: ReturnType<typeof openBulkhead>, calls: number) => {
      await start(calls, "other");
      await endAll();
    };

    test("does not fall for the calls of one organization, however many of them fail", async () => {
      const bulkhead = openBulkhead();
      await fail(bulkhead, 1, "one");
      for (let rounds = 0; rounds < 10; rounds += 1) {
        await answer(bulkhead, 40);
        await fail(bulkhead, 30, "one");
      }
      expect(await bulkhead.limit()).toBe(50);
    });

    test("falls if those of two organizations fail", async () => {
      const bulkhead = openBulkhead();
      await fail(bulkhead, 1, "one");
      await answer(bulkhead, 40);
      await fail(bulkhead, 12, "two", "one");
      expect(await bulkhead.limit()).toBe(33);
    });

    test("falls for the calls of one organization once the others have no answered calls any more", async () => {
      const bulkhead = openBulkhead();
      await fail(bulkhead, 1, "one");
      for (let rounds = 0; rounds < 20; rounds += 1) await answer(bulkhead, 40);
      await fail(bulkhead, 181 + 10, "one");
      expect(await bulkhead.limit()).toBe(50);
      await fail(bulkhead, 1, "one");
      expect(await bulkhead.limit()).toBe(33);
    });
  });

  test("falls once for one burst of refusals, however long they take to arrive", async () => {
    const { start, end, limit } = openBulkhead();
    await start(50);
    await end(refused);
    for (let seconds = 0; seconds < 20; seconds += 1) {
      await end(refused);
      await pass(1);
    }
    expect(await limit()).toBe(33);
  });

  test("falls again when calls that began after the fall are refused, at most once a second", async () => {
    const { start, end, limit, fall } = openBulkhead();
    await fall();
    for (let calls = 0; calls < 10; calls += 1) {
      await start(1);
      await end(refused);
    }
    expect(await limit()).toBe(33);
    await pass(1);
    await start(1);
    await end(refused);
    expect(await limit()).toBe(22);
  });

  test("never falls below one, and doubles from there once the provider answers again", async () => {
    const { start, end, endAll, limit } = openBulkhead();
    for (let calls = 0; calls < 30; calls += 1) {
      await start(1);
      await end(refused);
      await pass(1);
    }
    expect(await limit()).toBe(1);
    await start(1_000);
    await endAll();
    await pass(3);
    expect(await limit()).toBe(8);
  });
});

test.each([
  ["one in a hundred fails with a 503", 100, { outcome: unavailable, ms: 2_500 }],
  ["one in five hundred hangs", 500, { outcome: timedOut, ms: 20_000 }],
])("of 40 calls a second for two minutes, each of 2.5 s, none lacks a slot although %s", async (_, every, failed) => {
  const bulkhead = new Bulkhead({ name: "serpapi", concurrentCallsMax: "adaptive" }, openMetrics());
  let busy = 0;
  for (let call = 0; call < 2 * 60 * 40; call += 1) {
    const { outcome, ms } = call % every === 7 ? failed : { outcome: page(), ms: 2_500 };
    const claims = new SlotClaims({ organizationId: "one", openSearches: 1 });
    const wait = { deadlineAtMs: performance.now() + 20_000, signal: new AbortController().signal, claims };
    const sent = () => new Promise<PageOutcome>((resolve) => void setTimeout(() => resolve(outcome), ms));
    void bulkhead.run(sent, wait).then((ended) => {
      if ("failure" in ended && ended.failure === "busy") busy += 1;
    });
    await pass(1 / 40);
  }
  expect(busy).toBe(0);
  expect(bulkhead.callsMax).toBeGreaterThanOrEqual(100);
});
