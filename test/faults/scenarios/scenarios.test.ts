import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { priceMils } from "../audit/evidence.ts";
import { freshRedis } from "../../harness/servers/servers.ts";
import type { Row } from "../report.ts";
import { scenarios } from "./all.ts";
import { equalSearchesSettings, measureEqualSearches } from "./equal-searches.ts";
import { measureFlushed } from "./flushed.ts";
import { measureLastCredits } from "./last-credits.ts";
import { measureLastOfLimit } from "./last-of-limit.ts";
import { isOneAnswer, measureOneKey } from "./one-key.ts";
import { measureOverload, wrongAnswers } from "./overload.ts";
import { measureRollingRestart } from "./rolling-restart.ts";
import { ScenarioStack, withStack } from "./scenario-stack.ts";

/** Small scenarios. They check outcomes; `npm run faults -- scenarios` also measures times. */

const servers = { postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis };

let stack: ScenarioStack;
beforeAll(async () => {
  const settings = { ...equalSearchesSettings, SEARCH_DEADLINE_MS: "30000" };
  stack = await ScenarioStack.open(servers, { apis: 2, workers: 2, settings });
});
afterAll(() => stack.close());

const notHeld = (rows: readonly Row[]) => rows.filter(({ held }) => !held);

test("no search fails while every API and every worker is replaced", async () => {
  const size = { searches: 100, inFlight: 8, rounds: 1, drainedBy: "removal" } as const;
  const { answers, ...figures } = await measureRollingRestart(stack, size);
  expect(answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(answers.length).toBeGreaterThanOrEqual(size.searches);
  expect(figures).toEqual({ replaced: 4, badExits: [], broken: [] });
});

test("200 searches that race for the last credits through two APIs spend them exactly once", async () => {
  const size = { attempts: 200, inFlight: 96, affordable: 40 };
  const { answers, ...figures } = await measureLastCredits(stack, size);
  const bodiesOf = (wanted: number) =>
    answers.filter(({ status }) => status === wanted).map(({ text }): object => JSON.parse(text));
  const refused = bodiesOf(402);
  expect({ answered: bodiesOf(200).length, refused: refused.length }).toEqual({ answered: 40, refused: 160 });
  expect(bodiesOf(200)).toContainEqual(expect.objectContaining({ creditsRemaining: 0 }));
  for (const body of refused)
    expect(body).toMatchObject({ error: { code: "out_of_credits", details: { priceMils, action: "topup" } } });
  expect(figures).toEqual({ providerCalls: 40, balances: { rest: 0, redis: 0, postgres: 0 }, broken: [] });
});

test("a hundred concurrent requests under one key are charged once and get the same bytes", async () => {
  const seen = await measureOneKey(stack, 1);
  expect(seen.filter((round) => !isOneAnswer(round))).toEqual([]);
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
  const size = { concurrency, peakMs: 200, overloadMs: 30_000, refusalsMax: 100 };
  const { answers, broken } = await withStack(servers, { apis: 1, workers: 1, settings }, (small) =>
    measureOverload(small, size),
  );
  expect(wrongAnswers(answers)).toEqual([]);
  expect(answers.some(({ status }) => status === 503)).toBe(true);
  expect(answers.some(({ status }) => status === 200)).toBe(true);
  expect(broken).toEqual([]);
});

test("after Redis lost its data no answer is wrong, and every organization is answered again", async () => {
  const { losses, broken } = await measureFlushed(stack, { organizations: 100, afterMs: 0 });
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
