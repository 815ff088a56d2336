import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readBacklog, type SearchWorker } from "../shared/queue/search-queue.ts";
import type { SlotLevel } from "./slot-level.ts";

interface Measured {
  worker: SearchWorker;
  /** How long a search occupies a slot, on average. */
  average: { readonly runMs: number };
  /** Calls that wait for a slot at a provider. */
  callsWaiting: () => number;
  /** Calls that may run at once at all providers. */
  callsMax: () => number;
  /** Called after each change of the slots, or of the slots that are attainable. */
  changed: () => Promise<void>;
}

/** Measures the load of this worker four times a second, and sets how many searches it runs at once. */
export function adjustSlots(
  { redis, metrics, log, shutdown }: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  level: SlotLevel,
  { worker, average, callsWaiting, callsMax, changed }: Measured,
): void {
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const run = async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const { slots: slotsBefore, attainable: attainableBefore } = level;
    const load = {
      taken: worker.peak(),
      runMs: average.runMs,
      queued: (await readBacklog(redis)).waiting,
      callsWaiting: callsWaiting(),
      callsMax: callsMax(),
      utilization,
      heapShare: heapShare(),
    };
    const slots = level.decide(load);
    metrics.workerSlots.set(slots);
    metrics.workerSlotsTaken.set(worker.running());
    if (slots === slotsBefore && level.attainable === attainableBefore) return;
    worker.setConcurrency(slots);
    log.debug({ slots, attainable: level.attainable, ...load }, "slots adjusted");
    await changed();
  };
  runPeriodically({ name: "slots", pauseMs: protocolTimes.slotDoublingMs, run, log, metrics, shutdown });
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
