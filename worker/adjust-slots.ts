import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readBacklog, readWaitingWithinShare } from "../shared/queue/backlog.ts";
import type { SearchWorker } from "../shared/queue/search-queue.ts";
import type { ConcurrencyController } from "./concurrency-controller.ts";
import type { GoogleEngine } from "./engine/google-engine.ts";

const shareCheckMs = 25;
// Searches within shares are about as many as slots, and more only when many organizations start at once. Even then an
// organization's only search is taken.
const withinSharesPerSlotMax = 2;
const concurrencyPerSlotMax = 3;

interface Measured {
  worker: SearchWorker;
  /** How long a search occupies a slot, on average. */
  average: { readonly runMs: number };
  google: Pick<GoogleEngine, "callsWaiting" | "callsMax">;
  /** Called after each change of the slots or of their ceiling. */
  changed: () => Promise<void>;
}

/**
 * Measures the load of this worker four times a second, and sets how many searches it runs at once. While all slots are taken,
 * it takes searches within their organizations' shares on top. Otherwise these would wait for a search to end that may itself
 * wait behind the calls of a large organization.
 */
export function adjustSlots(
  { redis, metrics, log, shutdown }: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  controller: ConcurrencyController,
  { worker, average, google, changed }: Measured,
): void {
  let concurrency = controller.slots;
  const setConcurrency = (searches: number) => {
    if (searches === concurrency) return;
    concurrency = searches;
    worker.setConcurrency(searches);
  };
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const run = async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const { slots: slotsBefore, slotsCeiling: ceilingBefore } = controller;
    const load = {
      taken: worker.peak(),
      runMs: average.runMs,
      queued: (await readBacklog(redis)).waiting,
      callsWaiting: google.callsWaiting(),
      callsMax: google.callsMax(),
      utilization,
      heapShare: heapShare(),
    };
    const slots = controller.decide(load);
    metrics.workerSlots.set(slots);
    metrics.workerSlotsTaken.set(worker.running());
    if (slots === slotsBefore && controller.slotsCeiling === ceilingBefore) return;
    setConcurrency(slots);
    log.debug({ slots, slotsCeiling: controller.slotsCeiling, ...load }, "slots adjusted");
    await changed();
  };
  const takeOnTop = async () => {
    const { slots } = controller;
    const running = worker.running();
    if (running < slots) return setConcurrency(slots);
    const { withinShare, only } = await readWaitingWithinShare(redis);
    const onTop = Math.max(
      Math.min(withinShare, slots * withinSharesPerSlotMax - running),
      Math.min(only, slots * concurrencyPerSlotMax - running),
    );
    setConcurrency(onTop > 0 ? running + onTop : slots);
  };
  runPeriodically({ name: "shares", pauseMs: shareCheckMs, run: takeOnTop, log, metrics, shutdown });
  runPeriodically({ name: "slots", pauseMs: protocolTimes.slotDoublingMs, run, log, metrics, shutdown });
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
