import { type EventLoopUtilization, performance } from "node:perf_hooks";
import { getHeapStatistics } from "node:v8";
import { runPeriodically } from "../shared/concurrency/run-periodically.ts";
import { throttledWarning } from "../shared/log.ts";
import type { Context } from "../shared/process/context.ts";
import { protocolTimes } from "../shared/protocol-times.ts";
import { beyondShareScore, queueKeys } from "../shared/queue/search-queue.ts";
import { Script } from "../shared/redis/script.ts";
import type { ConcurrencyController } from "./concurrency-controller.ts";
import type { GoogleEngine } from "./engine/google-engine.ts";
import type { JobLoop } from "./job-loop.ts";

const shareCheckMs = 25;
const listWithinSharesScript = new Script("listWithinShares", new URL("list-within-shares.lua", import.meta.url));

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
  watchShares(context, controller, jobs);
}

/**
 * From the moment at which all slots are taken until one is free, takes searches on top: up to `slotsMin` within shares, and up to
 * twice as many as long as only searches of organizations wait, which come first. It counts by the fewest slots, because slots may
 * become fewer while their searches run. The searches of a worker that died come first too, whatever their share.
 */
function watchShares(
  { redis, metrics, log, shutdown }: Pick<Context, "redis" | "metrics" | "log" | "shutdown">,
  controller: ConcurrencyController,
  jobs: JobLoop,
): void {
  const { slotsMin } = controller;
  const warn = throttledWarning(log, "the searches within shares were not taken");
  let timer: NodeJS.Timeout | undefined;
  const take = async () => {
    if (!jobs.mayTakeOnTop) return;
    const onTop = jobs.runningOnTop;
    const keys = [queueKeys.waiting, queueKeys.waitingByTurn];
    const listed = Number(await listWithinSharesScript.run(redis, keys, [beyondShareScore, slotsMin - onTop]));
    await jobs.takeOnTop(Math.max(0, Math.min(listed, 2 * slotsMin - onTop)));
  };
  const look = async () => {
    try {
      await take();
    } catch (error) {
      metrics.backgroundErrors.inc({ where: "shares" });
      warn(error);
    }
    if (timer === undefined) return;
    timer = jobs.running < controller.slots ? undefined : setTimeout(() => void look(), shareCheckMs);
  };
  jobs.whenFull(() => {
    timer ??= setTimeout(() => void look(), shareCheckMs);
  });
  shutdown.register("shares", () => {
    jobs.whenFull(() => undefined);
    clearTimeout(timer);
    timer = undefined;
  });
}

function heapShare(): number {
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics();
  return used / limit;
}
