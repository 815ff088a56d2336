import { createHistogram } from "node:perf_hooks";

/** The time in milliseconds within which this share of the times lies; 0 of none. */
export function quantile(timesMs: readonly number[], share: number): number {
  const histogram = createHistogram(); // It takes whole numbers from 1 on, hence microseconds.
  for (const ms of timesMs) histogram.record(Math.max(1, Math.round(ms * 1_000)));
  return timesMs.length === 0 ? 0 : histogram.percentile(share * 100) / 1_000;
}

/** How often each value occurs, as words: `4000 × 402, 1000 × 200`. */
export function tally(values: readonly (number | string)[]): string {
  const counts = [...Map.groupBy(values, (value) => value)].map(([value, same]) => ({ value, times: same.length }));
  return (
    counts
      .toSorted((one, other) => other.times - one.times)
      .map(({ value, times }) => `${times} × ${value}`)
      .join(", ") || "none"
  );
}
