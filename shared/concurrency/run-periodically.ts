import type { Counter, Gauge } from "prom-client";
import { type Log, throttledWarning } from "../log.ts";
import type { Shutdown } from "./shutdown.ts";

interface Rhythm {
  acts: Set<() => void>;
  timer: NodeJS.Timeout;
}

/** By milliseconds from one tick to the next. */
const rhythms = new Map<number, Rhythm>();

/**
 * Calls `act` every `pauseMs`, in the same tick as everything else of this process with that pause: an idle process then wakes
 * once for all of it, and the commands to Redis share a message. The first tick comes at a random time within the pause, so that
 * processes which start together do not act in step. Keeps no process alive.
 * @returns ends it.
 */
export function actEvery(pauseMs: number, act: () => void): () => void {
  const rhythm = rhythms.get(pauseMs) ?? beginRhythm(pauseMs);
  rhythm.acts.add(act);
  return () => {
    rhythm.acts.delete(act);
    if (rhythm.acts.size > 0) return;
    clearInterval(rhythm.timer);
    rhythms.delete(pauseMs);
  };
}

function beginRhythm(pauseMs: number): Rhythm {
  const tick = () => {
    for (const act of rhythm.acts) act();
  };
  const first = () => {
    rhythm.timer = setInterval(tick, pauseMs).unref();
    tick();
  };
  const rhythm: Rhythm = { acts: new Set(), timer: setTimeout(first, Math.random() * pauseMs).unref() };
  rhythms.set(pauseMs, rhythm);
  return rhythm;
}

/**
 * Runs background work until the process stops: at once, unless it pauses first, and then every `pauseMs` ({@link actEvery}).
 * Runs never overlap: a tick is left out during a run, and for half a pause after it. A run that fails is counted and logged,
 * and the next one follows.
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
  const { name, pauseMs, measured = [] } = options;
  options.metrics.backgroundErrors.inc({ where: name }, 0);
  const warn = throttledWarning(options.log, `background task failed: ${name}`);
  const runOnce = async () => {
    try {
      await options.run();
    } catch (error) {
      for (const gauge of measured) gauge.remove();
      options.metrics.backgroundErrors.inc({ where: name });
      warn(error);
    }
  };
  let running: Promise<void> | undefined;
  let endedAtMs = options.pausesFirst ? performance.now() : Number.NEGATIVE_INFINITY;
  const act = () => {
    if (running || performance.now() - endedAtMs < pauseMs / 2) return;
    running = runOnce().finally(() => {
      running = undefined;
      endedAtMs = performance.now();
    });
  };
  if (!options.pausesFirst) act();
  const end = actEvery(pauseMs, act);
  options.shutdown.register(name, () => {
    end();
    return running;
  });
}
