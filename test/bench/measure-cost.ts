import { Bench } from "tinybench";

/** Microseconds per run, after a warm-up. */
export interface Cost {
  medianUs: number;
  p99Us: number;
}

const warmupShare = 0.5;

/** Runs a function repeatedly for `measuredMs`. @throws what the function throws, and {Error} if the clock is too coarse. */
export function measureCost(run: () => unknown, { measuredMs }: { measuredMs: number }): Cost {
  const bench = new Bench({ time: measuredMs, warmupTime: measuredMs * warmupShare, throws: true });
  const [task] = bench.add("run", run).runSync();
  if (task?.result.state !== "completed") throw new Error("The measurement is not complete.");
  const { p50, p99 } = task.result.latency;
  return { medianUs: p50 * 1_000, p99Us: p99 * 1_000 };
}
