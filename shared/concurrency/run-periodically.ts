import { setTimeout as sleep } from "node:timers/promises";
import type { Gauge } from "prom-client";
import type { Shutdown } from "../process/shutdown.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";

/**
 * Runs a piece of background work again and again until the process closes: at once, then `pauseMs` after each end, so
 * that rounds never overlap. A round that fails is counted and logged, and the next one comes all the same.
 */
export function runPeriodically(options: {
  name: string;
  pauseMs: number;
  run: () => Promise<void>;
  /** What a round measures: absent after one that failed, since nobody knows it then. */
  measured?: readonly Gauge[];
  log: Log;
  metrics: Metrics;
  shutdown: Shutdown;
}): void {
  const stop = new AbortController();
  const warn = throttledWarning(options.log, `a round of ${options.name} failed`);
  const rounds = (async () => {
    while (!stop.signal.aborted) {
      try {
        await options.run();
      } catch (error) {
        for (const gauge of options.measured ?? []) gauge.remove();
        options.metrics.backgroundErrors.inc({ where: options.name });
        warn(error);
      }
      await sleep(options.pauseMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })();
  options.shutdown.register(options.name, () => {
    stop.abort();
    return rounds;
  });
}
