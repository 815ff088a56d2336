import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { freshRedis } from "../../harness/servers/servers.ts";
import { scenarios } from "./all.ts";
import { measureFlushed } from "./flushed.ts";
import { measureOverload, wrongAnswers } from "./overload.ts";
import { measureRollingRestart } from "./rolling-restart.ts";
import { ScenarioStack } from "./scenario-stack.ts";

/** Small scenarios in one stack, for what happens and not for how fast; `npm run faults -- scenarios` measures that. */

const concurrency = 2;
const settings = {
  WORKER_CONCURRENCY: String(concurrency),
  SEARCH_DEADLINE_MS: "12000", // Half of it is what the queue may hold, so an overload shows after two seconds.
};

let stack: ScenarioStack;
beforeAll(async () => {
  const servers = { postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis };
  stack = await ScenarioStack.open(servers, { apis: 2, workers: 2, settings });
}, 120_000);
afterAll(() => stack.close());

test("no search fails while every API and every worker is replaced", { timeout: 120_000 }, async () => {
  const size = { searches: 100, inFlight: 8, rounds: 1, drainedBy: "removal" } as const;
  const { answers, ...figures } = await measureRollingRestart(stack, size);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(answers.length).toBeGreaterThanOrEqual(size.searches);
  expect(figures).toEqual({ replaced: 4, badExits: [], broken: [] });
});

test("with five times as many searches as can be answered, each is answered or gets the time to come back", {
  timeout: 120_000,
}, async () => {
  const size = { concurrency, peakMs: 200, overloadMs: 30_000, refusalsMax: 100 };
  const { answers, broken } = await measureOverload(stack, size);
  expect(wrongAnswers(answers)).toEqual([]);
  expect(answers.some(({ status }) => status === 503)).toBe(true);
  expect(answers.some(({ status }) => status === 200)).toBe(true);
  expect(broken).toEqual([]);
});

test("a Redis that lost everything causes no wrong answer, and every organization is answered again", {
  timeout: 120_000,
}, async () => {
  const { losses, broken } = await measureFlushed(stack, { organizations: 150, afterMs: 0 });
  expect(losses.map(({ how }) => how)).toEqual(["flushed", "killed and restarted empty"]);
  for (const { traffic } of losses) {
    expect(traffic.afterLoss.filter(({ verdict }) => verdict === "wrong")).toEqual([]);
    expect(traffic.hasAnsweredSearch).toBe(true);
    expect(traffic.allServedAtMs).toBeLessThan(Number.POSITIVE_INFINITY);
  }
  expect(losses[1]?.storedMs).toBeGreaterThan(0);
  expect(broken).toEqual([]);
});

test("every scenario has a name of its own", () => {
  const names = scenarios.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
