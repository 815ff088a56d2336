import { createHistogram } from "node:perf_hooks";

/** The quantile of times in milliseconds; 0 of none. */
export function quantile(timesMs: readonly number[], share: number): number {
  const histogram = createHistogram(); // It records positive integers, hence microseconds.
  for (const ms of timesMs) histogram.record(Math.max(1, Math.round(ms * 1_000)));
  return timesMs.length === 0 ? 0 : histogram.percentile(share * 100) / 1_000;
}

/** How often each value occurs, most often first: `4000 × 402, 1000 × 200`. */
export function tally(values: readonly (number | string)[]): string {
  const counts = [...Map.groupBy(values, (value) => value)].map(([value, same]) => ({ value, times: same.length }));
  return (
    counts
      .toSorted((one, other) => other.times - one.times)
      .map(({ value, times }) => `${times} × ${value}`)
      .join(", ") || "none"
  );
}
