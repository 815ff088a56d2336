import { format } from "node:util";
import type { Log } from "../log.ts";

// Libraries say the same on each of their connections. Texts beyond this number are logged each time.
const textsKeptMax = 1_000;

const consoleLevels = { debug: "debug", log: "info", info: "info", warn: "warn", error: "error" } as const;
const consoleMethods = ["debug", "log", "info", "warn", "error"] as const;

/**
 * Brings into the log what Node and the libraries would print as text: warnings, what libraries write to the console, and an
 * error that nothing has caught, which then ends the process with exit code 1. Each text is logged once. A Node that runs out
 * of memory still prints text.
 */
export function logTrouble(log: Log): void {
  const isNew = openMemory();
  // The only listener so early is Node's own, which prints to stderr.
  process.removeAllListeners("warning");
  process.on("warning", (warning) => {
    if (isNew(`${warning.name}: ${warning.message}`)) log.warn({ err: warning }, "a warning of Node.js");
  });
  process.on("uncaughtException", (error, origin) => {
    log.fatal({ err: error, origin }, "an error that nothing has caught ends the process");
    process.exit(1);
  });
  for (const method of consoleMethods) {
    console[method] = (...values: unknown[]) => {
      const text = format(...values);
      if (isNew(text)) log[consoleLevels[method]]({ text }, "a library wrote to the console");
    };
  }
}

/** @returns whether a text comes for the first time. */
function openMemory(): (text: string) => boolean {
  const seen = new Set<string>();
  return (text) => {
    if (seen.has(text)) return false;
    if (seen.size < textsKeptMax) seen.add(text);
    return true;
  };
}
