import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { throttledWarning } from "../shared/log.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { readWaitingWithinShare } from "../shared/queue/backlog.ts";
import type { ConcurrencyController } from "./concurrency-controller.ts";
import type { GoogleEngine } from "./engine/google-engine.ts";
import type { JobLoop } from "./job-loop.ts";

const shareCheckMs = 25;
// Searches within shares are about as many as slots, and more only when many organizations start at once. Even then an
// organization's only search is taken.
const withinSharesPerSlotMax = 2;
const concurrencyPerSlotMax = 3;

interface Measured {
  jobs: JobLoop;
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
  context: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  controller: ConcurrencyController,
  { jobs, average, google, changed }: Measured,
): void {
  const { metrics, log, shutdown } = context;
  let last: EventLoopUtilization = performance.eventLoopUtilization();
  const run = async () => {
    const now = performance.eventLoopUtilization();
    const { utilization } = performance.eventLoopUtilization(now, last);
    last = now;
    const { slots: slotsBefore, slotsCeiling: ceilingBefore } = controller;
    const load = {
      taken: jobs.takePeak(),
      runMs: average.runMs,
      queued: jobs.waiting,
      callsWaiting: google.callsWaiting(),
      callsMax: google.callsMax(),
      utilization,
      heapShare: heapShare(),
    };
    const slots = controller.decide(load);
    metrics.workerSlots.set(slots);
    metrics.workerSlotsTaken.set(jobs.running);
    if (slots === slotsBefore && controller.slotsCeiling === ceilingBefore) return;
    jobs.setConcurrency(slots);
    log.debug({ slots, slotsCeiling: controller.slotsCeiling, ...load }, "slots adjusted");
    await changed();
  };
  runPeriodically({ name: "slots", pauseMs: protocolTimes.slotDoublingMs, run, log, metrics, shutdown });
  takeOnTop(context, controller, jobs);
}

/** From the moment at which all slots are taken until one is free. */
function takeOnTop(
  { redis, metrics, log, shutdown }: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  controller: ConcurrencyController,
  jobs: JobLoop,
): void {
  const warn = throttledWarning(log, "the searches within shares were not counted");
  let timer: NodeJS.Timeout | undefined;
  const look = async () => {
    const { slots } = controller;
    const { running } = jobs;
    if (running < slots) {
      timer = undefined;
      jobs.setConcurrency(slots);
      return;
    }
    try {
      const { withinShare, only } = await readWaitingWithinShare(redis);
      const onTop = Math.max(
        Math.min(withinShare, slots * withinSharesPerSlotMax - running),
        Math.min(only, slots * concurrencyPerSlotMax - running),
      );
      jobs.setConcurrency(onTop > 0 ? running + onTop : slots);
    } catch (error) {
      metrics.backgroundErrors.inc({ where: "shares" });
      warn(error);
    }
    if (timer !== undefined) timer = setTimeout(() => void look(), shareCheckMs);
  };
  jobs.whenFull(() => {
    timer ??= setTimeout(() => void look(), shareCheckMs);
  });
  shutdown.register("shares", () => {
    clearTimeout(timer);
    timer = undefined;
  });
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
