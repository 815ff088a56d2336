import { expect, onTestFinished, test, vi } from "vitest";
import { Recorder } from "./recorder.ts";

test("rates and latencies exclude answers and refusals during the lead", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const recorder = new Recorder({ leadSeconds: 1, mayRefuse: true });
  vi.advanceTimersByTime(999);
  recorder.answered(900);
  recorder.refused(900);
  for (const latencyMs of [7, 8]) {
    vi.advanceTimersByTime(251);
    recorder.answered(latencyMs);
    recorder.refused(1);
  }
  const { answered, ...figures } = recorder.result();
  expect(answered).toBe(3);
  expect(figures.searchesPerSecond).toBeCloseTo(2 / 0.501);
  expect(figures.refusedPerSecond).toBeCloseTo(2 / 0.501);
  expect([figures.maxMs, figures.refusedP99Ms].map((ms) => Math.round(ms ?? 0))).toEqual([8, 1]);
});
