import { fail, print, say, warn } from "./start-output.ts";

/** How everything that `npm start` started is stopped: in reverse, the worker first and Postgres last. */

const stopTimeoutMs = 25_000; // There are four processes, and each is killed after 5 s.
const repeatedSignalMs = 1_000;

const started: { name: string; stop: () => Promise<void> }[] = [];
let stopping: Promise<void> | undefined;
let stoppingSinceMs = 0;
let stoppingName = "a step of the start";

/** To be called right after a process was started. */
export function stopAtEnd(name: string, stop: () => Promise<void>): void {
  started.push({ name, stop });
}

export const isStopping = (): boolean => stopping !== undefined;

/** Stops everything and ends this process. @param reason what went wrong; absent if it was asked to stop. */
export function end(exitCode: number, reason?: string): Promise<void> {
  if (stopping === undefined) stoppingSinceMs = performance.now();
  stopping ??= stopAll(exitCode, reason);
  return stopping;
}

/** Ctrl-C may arrive twice, from the terminal and from npm. Only a later one is another press, which is answered too. */
export function answerSignal(): void {
  if (stopping !== undefined && performance.now() - stoppingSinceMs > repeatedSignalMs)
    warn("Stopping", `waiting for ${stoppingName}, which is killed after 5 s`);
  void end(0);
}

// A process that is just starting is not on the list yet. Its guard stops it once this process has ended.
async function stopAll(exitCode: number, reason?: string): Promise<void> {
  if (reason !== undefined) fail(reason);
  print("\nStopping");
  setTimeout(() => process.exit(exitCode || 1), stopTimeoutMs);
  for (let last = started.pop(); last !== undefined; last = started.pop()) {
    stoppingName = last.name;
    await last.stop();
    say(last.name, "stopped");
  }
  process.exit(exitCode);
}
