import { Bench } from "tinybench";

/** Microseconds of one run, of many after a warm-up. */
export interface Cost {
  medianUs: number;
  p99Us: number;
}

const warmupShare = 0.5;

/** What it costs to run this, measured for so long. @throws what it throws, and where the clock is too coarse. */
export function measureCost(run: () => unknown, { measuredMs }: { measuredMs: number }): Cost {
  const bench = new Bench({ time: measuredMs, warmupTime: measuredMs * warmupShare, throws: true });
  const [task] = bench.add("run", run).runSync();
  if (task?.result.state !== "completed") throw new Error("A run that did not throw is complete.");
  const { p50, p99 } = task.result.latency;
  return { medianUs: p50 * 1_000, p99Us: p99 * 1_000 };
}
