import { expect, test } from "vitest";
import { RetryBudget, withRetry } from "../../../../worker/providers/policies/retry.ts";
import { type FailureKind, failureKinds, type PageOutcome } from "../../../../worker/providers/provider.ts";
import { farMs, page } from "./fixtures.ts";

/** Runs a call with these outcomes, one after the other. */
async function run(outcomes: PageOutcome[], { budget = new RetryBudget(), remainingMs = farMs } = {}) {
  const stop = new AbortController();
  let calls = 0;
  const call = async () => outcomes[calls++] ?? page();
  const limits = { budget, deadlineAtMs: performance.now() + remainingMs, signal: stop.signal };
  const outcome = await withRetry(call, limits);
  return { outcome, calls };
}

// Object.keys() loses the literal types.
const kinds = Object.keys(failureKinds) as FailureKind[];
const passing = kinds.filter((kind) => failureKinds[kind].retry);
const lasting = kinds.filter((kind) => !failureKinds[kind].retry);

test("a success is not retried", async () => {
  expect(await run([page({ costMicroUsd: 7 })])).toEqual({ outcome: page({ costMicroUsd: 7 }), calls: 1 });
});

test.each(passing)("%s is retried once, and the outcome of the retry counts", async (failure) => {
  expect(await run([{ failure }, page()])).toEqual({ outcome: page(), calls: 2 });
  expect(await run([{ failure }, { failure: "unavailable", costMicroUsd: 3 }])).toEqual({
    outcome: { failure: "unavailable", costMicroUsd: 3 },
    calls: 2,
  });
});

test.each(lasting)("%s is not retried", async (failure) => {
  expect(await run([{ failure }])).toEqual({ outcome: { failure }, calls: 1 });
});

test("without retry budget the first failure counts", async () => {
  const budget = new RetryBudget();
  while (budget.spend());
  expect(await run([{ failure: "unavailable" }], { budget })).toEqual({
    outcome: { failure: "unavailable" },
    calls: 1,
  });
});

test("a retry for which there is no time is not made, costs no budget, and the failure says so", async () => {
  const budget = new RetryBudget();
  const { outcome, calls } = await run([{ failure: "unavailable" }], { budget, remainingMs: 100 });
  expect({ outcome, calls }).toEqual({ outcome: { failure: "unavailable", outOfTime: true }, calls: 1 });
  expect(Array.from({ length: 11 }, () => budget.spend()).filter(Boolean)).toHaveLength(10);
});

test("a cancellation ends the pause before a retry", async () => {
  const stop = new AbortController();
  let calls = 0;
  const call = async (): Promise<PageOutcome> => {
    calls += 1;
    setImmediate(() => stop.abort());
    return { failure: "unavailable" };
  };
  const limits = { budget: new RetryBudget(), deadlineAtMs: performance.now() + farMs, signal: stop.signal };
  expect(await withRetry(call, limits)).toEqual({ failure: "unavailable" });
  expect(calls).toBe(1);
});

const times = (count: number, action: () => unknown) => Array.from({ length: count }, action);
const spentOf = (budget: RetryBudget, tries: number) => times(tries, () => budget.spend()).filter(Boolean).length;

test("a burst of ten retries is allowed at once", () => {
  expect(spentOf(new RetryBudget(), 20)).toBe(10);
});

test("ten calls earn one retry", () => {
  const budget = new RetryBudget();
  spentOf(budget, 10);
  times(9, () => budget.earn());
  expect(budget.spend()).toBe(false);
  budget.earn();
  expect(spentOf(budget, 2)).toBe(1);
});

test("a long time without failures saves up no more than ten retries", () => {
  const budget = new RetryBudget();
  times(1_000, () => budget.earn());
  expect(spentOf(budget, 20)).toBe(10);
});
