import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Deadline } from "../../../api/search/search-request.ts";
import { protocolTimes } from "../../../shared/protocol-times.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const never = new Promise<never>(() => undefined);

test("the steps of a search that pass its deadline share one time after it", async () => {
  const deadline = new Deadline(performance.now(), 1_000);
  let ended = 0;
  const end = () => {
    ended += 1;
  };
  void deadline.limit(never).catch(end);
  await vi.advanceTimersByTimeAsync(1_000 + protocolTimes.lateStepMs - 1);
  expect(ended).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toBe(1);
  void deadline.limit(never).catch(end);
  await vi.advanceTimersByTimeAsync(1);
  expect(ended).toBe(2);
});
