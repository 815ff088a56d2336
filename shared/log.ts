import { pino, type Logger } from "pino";

export type Log = Logger;

// Lines are buffered at most this long: a write for each line would cost as much as a round trip to Redis.
const flushAfterMs = 100;
const bufferBytes = 8_192;
// Lines beyond this are dropped while nothing reads stdout: a log driver that hangs must not use up the memory.
const waitingBytesMax = 8 * 1024 * 1024;
// A second line of defence: no caller may log a secret at all. Deeper paths would cost more than the line itself.
const secretPaths = ["authorization", "token", "password", "headers"];

/** The log of one process: one JSON object a line on stdout. Of errors, only fields that cannot hold a secret are logged. */
export function openLog(options: { name: string; level: string }): Log {
  const stdout = bufferedStdout();
  const log = pino(
    {
      base: { process: options.name, pid: process.pid },
      level: options.level,
      redact: { paths: secretPaths, censor: "[secret]" },
      serializers: { err: describeError },
    },
    stdout,
  );
  let dropped = 0;
  stdout.on("drop", () => {
    dropped += 1;
  });
  stdout.on("drain", () => {
    if (dropped === 0) return;
    log.warn({ dropped }, "lines of this log were dropped, because nothing read it");
    dropped = 0;
  });
  return log;
}

/** Stdout, written in batches of lines. Its own periodic flush would write every 100 ms, also without a line. */
function bufferedStdout(): ReturnType<typeof pino.destination> {
  const stdout = pino.destination({ dest: 1, sync: false, minLength: bufferBytes, maxLength: waitingBytesMax });
  const write = stdout.write.bind(stdout);
  let flush: NodeJS.Timeout | undefined;
  let isDue = false;
  stdout.write = (lines) => {
    flush ??= setTimeout(() => {
      flush = undefined;
      isDue = true;
      stdout.flush();
    }, flushAfterMs).unref();
    return write(lines);
  };
  // During a write `flush` does nothing: the lines that came since are written when it has ended.
  stdout.on("drain", () => {
    if (!isDue) return;
    isDue = false;
    stdout.flush();
  });
  // Pino calls it at the exit. A reader that is gone must not change how the process ends.
  const flushSync = stdout.flushSync.bind(stdout);
  stdout.flushSync = () => {
    try {
      flushSync();
    } catch {
      // There is nowhere left to say it.
    }
  };
  return stdout;
}

/**
 * The fields of an error that may be logged. Client libraries attach whole commands, requests and headers to their errors,
 * and with them tokens and provider keys.
 */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = "code" in error && typeof error.code === "string" ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}

const quietMs = 5_000;

/**
 * A warning for errors that may come thousands of times a second, as from a client library that reconnects. The first one
 * is logged at once, then at most one in five seconds, with the number of those left out since.
 */
export function throttledWarning(log: Log, sentence: string): (error: unknown) => void {
  return throttled(quietMs, (error, leftOut) => log.warn({ err: error, leftOut }, sentence));
}

/**
 * Writes the first line at once, then at most one in `pauseMs`.
 * @param write gets the value of its line, and the number of those left out since the last one.
 */
export function throttled<Value>(
  pauseMs: number,
  write: (value: Value, leftOut: number) => void,
): (value: Value) => void {
  let quietUntil = 0;
  let leftOut = 0;
  return (value) => {
    const now = performance.now();
    if (now < quietUntil) {
      leftOut += 1;
      return;
    }
    write(value, leftOut);
    quietUntil = now + pauseMs;
    leftOut = 0;
  };
}
