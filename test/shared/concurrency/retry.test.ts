import { expect, test } from "vitest";
import { retryUntil, retryWhile } from "../../../shared/concurrency/retry.ts";

/** A step that fails so many times and then succeeds. */
function failing(times: number) {
  let calls = 0;
  const step = async () => {
    calls += 1;
    if (calls <= times) throw new Error(`failure ${calls}`);
  };
  return { step, calls: () => calls };
}

const later = () => performance.now() + 60_000;

test("a step is retried until it succeeds", async () => {
  const { step, calls } = failing(3);
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  await retryUntil({ giveUpAtMs: later(), pauseMs: 1, onError }, step);
  expect([calls(), errors.length]).toEqual([4, 3]);
});

test("a step that fails after its time is not retried, and its last failure is seen", async () => {
  const { step, calls } = failing(3);
  const errors: unknown[] = [];
  const onError = (error: unknown) => errors.push(error);
  await retryUntil({ giveUpAtMs: performance.now(), pauseMs: 1, onError }, step);
  expect([calls(), errors.length]).toEqual([1, 1]);
});

test("a step is tried once even where its time is over before it begins", async () => {
  const { step, calls } = failing(0);
  const options = { giveUpAtMs: Number.NEGATIVE_INFINITY, pauseMs: 1, onError: () => undefined };
  await retryUntil(options, step);
  expect(calls()).toBe(1);
});

test("an error that may not be retried is thrown at once", async () => {
  const { step, calls } = failing(3);
  const mayRetry = (error: unknown) => error instanceof Error && error.message !== "failure 2";
  await expect(retryWhile({ pauseMs: 1, mayRetry }, step)).rejects.toThrow("failure 2");
  expect(calls()).toBe(2);
});

test("retries are a pause apart", async () => {
  const startedMs = performance.now();
  await retryUntil({ giveUpAtMs: later(), pauseMs: 20, onError: () => undefined }, failing(2).step);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(38);
});
