import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { readBacklog, type SearchWorker } from "../shared/queue/search-queue.ts";
import type { SlotLevel } from "./slot-level.ts";

const decisionIntervalMs = 250;

interface Measured {
  worker: SearchWorker;
  /** How long a search occupies a slot, on average. */
  average: { readonly runMs: number };
  /** Calls that wait for a slot at a provider. */
  callsWaiting: () => number;
  /** Called after each change. */
  changed: () => Promise<void>;
}

/** Measures the load of this worker four times a second, and sets how many searches it runs at once. */
export function adjustSlots(
  { redis, metrics, log, shutdown }: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  level: SlotLevel,
  { worker, average, callsWaiting, changed }: Measured,
): void {
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const run = async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const before = level.slots;
    const load = {
      taken: worker.peak(),
      runMs: average.runMs,
      queued: (await readBacklog(redis)).waiting,
      callsWaiting: callsWaiting(),
      utilization,
      heapShare: heapShare(),
    };
    const slots = level.decide(load);
    metrics.workerSlots.set(slots);
    metrics.workerSlotsTaken.set(worker.running());
    if (slots === before) return;
    worker.setConcurrency(slots);
    log.debug({ slots, ...load }, "slots adjusted");
    await changed();
  };
  runPeriodically({ name: "slots", pauseMs: decisionIntervalMs, run, log, metrics, shutdown });
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
