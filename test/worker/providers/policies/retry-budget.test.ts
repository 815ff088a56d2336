import { expect, test } from "vitest";
import { RetryBudget } from "../../../../worker/providers/policies/retry-budget.ts";

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
