import { setTimeout as sleep } from "node:timers/promises";
import type { Counter, Gauge } from "prom-client";
import { type Log, throttledWarning } from "../log.ts";
import type { Shutdown } from "./shutdown.ts";

/** Each pause is longer or shorter by up to this share, so that processes which start together do not act in step. */
const jitter = 0.1;

export const jittered = (pauseMs: number, random = Math.random()) => pauseMs * (1 + jitter * (2 * random - 1));

/**
 * Runs background work until the process stops: at once, or after the first pause, then about `pauseMs` after each run ended,
 * so runs never overlap. A run that fails is counted and logged, and the next one follows.
 */
export function runPeriodically(options: {
  name: string;
  pauseMs: number;
  /** For work that is not urgent: a process that starts has its connections to open and little time for them. */
  pausesFirst?: boolean;
  run: () => Promise<void>;
  /** Gauges that a run sets. They are absent after a run that failed: an old value would look like a current one. */
  measured?: readonly Gauge[];
  log: Log;
  metrics: { backgroundErrors: Counter<"where"> };
  shutdown: Shutdown;
}): void {
  const stop = new AbortController();
  const warn = throttledWarning(options.log, `background task failed: ${options.name}`);
  const runs = (async () => {
    const pause = () => sleep(jittered(options.pauseMs), undefined, { signal: stop.signal }).catch(() => undefined);
    if (options.pausesFirst) await pause();
    while (!stop.signal.aborted) {
      try {
        await options.run();
      } catch (error) {
        for (const gauge of options.measured ?? []) gauge.remove();
        options.metrics.backgroundErrors.inc({ where: options.name });
        warn(error);
      }
      await pause();
    }
  })();
  options.shutdown.register(options.name, () => {
    stop.abort();
    return runs;
  });
}
