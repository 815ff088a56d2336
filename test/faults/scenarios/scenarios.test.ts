import { afterAll, expect, test } from "vitest";
import { stackServers } from "../../harness/servers/servers.ts";
import { notHeld } from "../report.ts";
import { equalSearchesSettings, measureEqualSearches } from "./equal-searches.ts";
import { measureFlushed } from "./flushed.ts";
import { measureLastCredits } from "./last-credits.ts";
import { measureLastOfLimit } from "./last-of-limit.ts";
import { measureOneKey } from "./one-key.ts";
import { measureOverload } from "./overload.ts";
import { measureRollingRestart } from "./rolling-restart.ts";
import { openScenarioStack, withStack } from "./scenario-stack.ts";

/** Small scenarios. They check outcomes; `npm run faults -- scenarios` also measures times. */

const stack = await openScenarioStack(stackServers(), {
  apis: 2,
  workers: 2,
  settings: { ...equalSearchesSettings, SEARCH_DEADLINE_MS: "30000" },
});
afterAll(() => stack.close());

test("no search fails while every API and every worker is replaced", async () => {
  const size = { searches: 50, inFlight: 8, providerMs: 1_000, rounds: 1, drainedBy: "removal" } as const;
  expect(notHeld(await measureRollingRestart(stack, size))).toEqual([]);
});

test("200 searches that race for the last credits through two APIs spend them exactly once", async () => {
  expect(notHeld(await measureLastCredits(stack, { attempts: 200, inFlight: 96, affordable: 40 }))).toEqual([]);
});

test("a hundred concurrent requests under one key are charged once and get the same bytes", async () => {
  expect(notHeld(await measureOneKey(stack, 1))).toEqual([]);
});

test("equal searches at once share one provider call, and each is charged", async () => {
  expect(notHeld(await measureEqualSearches(stack, 1))).toEqual([]);
});

test("a limit for some of many searches at once admits exactly those, also if a worker is killed", async () => {
  expect(notHeld(await measureLastOfLimit(stack, 1))).toEqual([]);
});

test("with five times as many searches as can be answered, each is answered or gets 503 with Retry-After", async () => {
  const concurrency = 2;
  // The queue may hold searches for half of the deadline, so an overload shows after two seconds.
  const settings = { WORKER_CONCURRENCY: String(concurrency), SEARCH_DEADLINE_MS: "12000" };
  const size = {
    concurrency,
    peakMs: 200,
    overloadMs: 30_000,
    refusalsMax: 100,
    goodputShareMin: 0,
    refusedMsMax: Number.POSITIVE_INFINITY,
  };
  const rows = await withStack(stackServers(), { apis: 1, workers: 1, settings }, (small) =>
    measureOverload(small, size),
  );
  expect(notHeld(rows)).toEqual([]);
});

test("after Redis lost its data no answer is wrong, and every organization is answered again", async () => {
  const size = { organizations: 100, afterMs: 0, readyMsMax: Number.POSITIVE_INFINITY };
  expect(notHeld(await measureFlushed(stack, size))).toEqual([]);
});
