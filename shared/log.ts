import { pino, type Logger } from "pino";

export type Log = Logger;

// Lines wait at most this long for company: a write of its own for each would cost as much as a round trip to Redis.
const flushEveryMs = 100;
const bufferBytes = 8_192;
// A net under the rule that nothing secret is handed to the log at all; deeper paths would cost more than the line itself.
const secretPaths = ["authorization", "token", "password", "headers"];

/** The log of one process: one JSON object a line on stdout. Errors keep only what cannot hold a secret. */
export function openLog(options: { name: string; level: string }): Log {
  return pino(
    {
      base: { process: options.name, pid: process.pid },
      level: options.level,
      redact: { paths: secretPaths, censor: "[secret]" },
      serializers: { err: describeError },
    },
    pino.destination({ dest: 1, sync: false, minLength: bufferBytes, periodicFlush: flushEveryMs }),
  );
}

/**
 * An error as far as it may be logged. Client libraries hang whole commands, requests and headers on their errors, and
 * with them tokens and provider keys, so only these fields go through.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}

const quietMs = 5_000;

/**
 * A logger for errors that can come thousands a second (a client library that reconnects): the first of each kind is
 * logged at once, then at most one in five seconds, with the number of those left out.
 */
export function throttledWarning(log: Log, sentence: string): (error: unknown) => void {
  let quietUntil = 0;
  let leftOut = 0;
  return (error) => {
    const now = performance.now();
    if (now < quietUntil) {
      leftOut += 1;
      return;
    }
    log.warn({ err: error, leftOut }, sentence);
    quietUntil = now + quietMs;
    leftOut = 0;
  };
}
