import { expect, inject, test } from "vitest";
import { freshRedis } from "../../harness/servers/servers.ts";
import { scenarios } from "./all.ts";
import { measureFlushed } from "./flushed.ts";
import { measureOverload, wrongAnswers } from "./overload.ts";
import { measureRollingRestart } from "./rolling-restart.ts";

/** The figures in small, for what happens and never for how fast: `npm run faults -- figures` measures them in full. */

const surroundings = () => ({ postgresUrl: inject("postgresUrl"), say: () => undefined, startRedis: freshRedis });

test.concurrent("searches go on while every API and every worker is replaced, and none of them fails", {
  timeout: 90_000,
}, async () => {
  const figures = await measureRollingRestart(surroundings(), { searches: 1_000, inFlight: 8, rounds: 1 });
  expect(figures.answers.filter(({ status }) => status !== 200)).toEqual([]);
  expect(figures.answers.length).toBeGreaterThanOrEqual(1_000);
  expect(figures).toMatchObject({ replaced: 4, badExits: [], chargedTooOften: 0, verified: true });
});

test.concurrent("a Redis that lost everything leads nobody to a wrong answer, and everybody is answered again", {
  timeout: 90_000,
}, async () => {
  const { losses, verified } = await measureFlushed(surroundings(), {
    organizations: 300,
    afterMs: 500,
    deadlineMs: 5_000,
  });
  expect(losses.map(({ how }) => how)).toEqual(["flushed", "killed and restarted empty"]);
  for (const { asked, allVisitedMs } of losses) {
    expect(asked.filter(({ verdict }) => verdict === "wrong")).toEqual([]);
    expect(asked.some(({ what, told }) => what === "search" && told.status === 200)).toBe(true);
    expect(allVisitedMs).toBeGreaterThan(0);
  }
  expect(losses[1]?.storedMs).toBeGreaterThan(0);
  expect(verified).toBe(true);
});

test("with five times as many searches as can be answered, each is answered or told at once when to come back", {
  timeout: 90_000,
}, async () => {
  const { answers, moneyExact } = await measureOverload(surroundings(), {
    atOncePerWorker: 2,
    peakMs: 500,
    overloadMs: 4_000,
    deadlineMs: 6_000,
  });
  expect(wrongAnswers(answers)).toEqual([]);
  expect(answers.some(({ status }) => status === 503)).toBe(true);
  expect(answers.some(({ status }) => status === 200)).toBe(true);
  expect(moneyExact).toBe(true);
});

test("every figure can be asked for by a name of its own", () => {
  const names = scenarios.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
});
