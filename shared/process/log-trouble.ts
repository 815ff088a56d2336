import { format } from "node:util";
import { type Log, throttled } from "../log.ts";

// Libraries repeat a text on each of their connections. If it still comes an hour later, it is logged again.
const repeatAfterMs = 3_600_000;
// The oldest text is forgotten first, and counts as new when it comes again.
const textsKeptMax = 1_000;

const consoleMethods = ["debug", "log", "info", "warn", "error"] as const;

/**
 * Logs what Node and the libraries would print as text: warnings, console output of libraries, and an uncaught error, which then
 * ends the process with exit code 1. Each text is logged at once and then at most hourly, with the number of repetitions left
 * out. A Node that runs out of memory still prints text.
 */
export function logTrouble(log: Log): void {
  const perText = openThrottles(repeatAfterMs);
  // The only listener so early is Node's own, which prints to stderr.
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    perText(`${warning.name}: ${warning.message}`, (leftOut) =>
      log.warn({ err: warning, leftOut }, "a warning of Node.js"),
    );
  });
  process.on("uncaughtException", (error, origin) => {
    log.fatal({ err: error, origin }, "an uncaught error ends the process");
    process.exit(1);
  });
  for (const method of consoleMethods) {
    console[method] = (...values: unknown[]) => {
      const text = format(...values);
      perText(text, (leftOut) =>
        log[method === "log" ? "info" : method]({ text, leftOut }, "a library wrote to the console"),
      );
    };
  }
}

type Write = (leftOut: number) => void;

/** @returns what writes for each text at once, and then at most one time in `pauseMs`. */
export function openThrottles(pauseMs: number): (text: string, write: Write) => void {
  const throttles = new Map<string, (write: Write) => void>();
  return (text, write) => {
    let throttle = throttles.get(text);
    if (!throttle) {
      throttle = throttled<Write>(pauseMs, (one, leftOut) => one(leftOut));
      const [oldest] = throttles.keys();
      if (throttles.size >= textsKeptMax && oldest !== undefined) throttles.delete(oldest);
      throttles.set(text, throttle);
    }
    throttle(write);
  };
}
