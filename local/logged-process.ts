/**
 * One process of ours under `npm start` or `npm run dev`: its log goes to a file; its warnings and errors, or all lines in
 * readable form, go to the terminal as well.
 */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { type GuardedProcess, startGuardedProcess } from "./guarded-process.ts";

const readyTimeoutMs = 30_000;
const pollMs = 50;
const requestTimeoutMs = 2_000;
const warningLevel = 40; // pino's number for "warn".
const lastLinesMax = 5;

export interface LoggedProcess extends GuardedProcess {
  name: string;
  /** The last lines of its log, for the message if it ends by itself. */
  lastLines: string[];
}

interface LoggedProcessOptions {
  name: string;
  mainFile: string;
  environment: NodeJS.ProcessEnv;
  logPath: string;
  /** Folders. If a file in them changes, Node restarts the process. */
  watched?: readonly string[];
  /** Formats a line of the log for the terminal. Without it, only what warnings and errors say appears there. */
  format?: ((line: string) => string) | undefined;
  say: (line: string) => void;
}

/** Starts `node <mainFile>`. `stop()` sends SIGTERM, and kills it if it takes too long. */
export async function startLoggedProcess(options: LoggedProcessOptions): Promise<LoggedProcess> {
  const { name, mainFile, environment, logPath, watched = [], format, say } = options;
  const watch = watched.length > 0 ? ["--watch", "--watch-preserve-output"] : [];
  const nodeOptions = [...watch, ...watched.map((folder) => `--watch-path=${folder}`)];
  const child = await startGuardedProcess(process.execPath, [...nodeOptions, mainFile], {
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const closed = once(child.process, "close"); // It comes after the exit, when the last lines have been read.
  const log = createWriteStream(logPath, { mode: 0o600 });
  const lastLines: string[] = [];
  for (const output of [child.process.stdout, child.process.stderr]) {
    if (output === null) continue;
    createInterface({ input: output }).on("line", (line) => {
      log.write(`${line}\n`);
      lastLines.push(line);
      if (lastLines.length > lastLinesMax) lastLines.shift();
      if (format) say(`${name}: ${format(line)}`);
      else if (isWarning(line)) say(readable(line));
    });
  }
  const exited = child.exited.then(async (reason) => {
    await closed;
    return reason;
  });
  return { ...child, name, lastLines, exited };
}

/**
 * Waits until the process answers 200 on `/readyz` at its ops port.
 * @throws {Error} if it ends before that or is not ready after 30 s. The message has the last lines of its log.
 */
export async function waitUntilReady(started: LoggedProcess, opsUrl: string): Promise<void> {
  const deadlineAtMs = Date.now() + readyTimeoutMs;
  while (Date.now() < deadlineAtMs) {
    if (await answersReady(opsUrl)) return;
    const ended = await Promise.race([started.exited, sleep(pollMs)]);
    if (typeof ended === "string") throw new Error(exitMessage(started, ended));
  }
  throw new Error(
    `${started.name} was not ready in ${readyTimeoutMs / 1000} s.\n${started.lastLines.map(readable).join("\n")}`,
  );
}

/** The message for a process that ended by itself. */
export function exitMessage({ name, lastLines }: LoggedProcess, reason: string): string {
  return [`${name} ended by itself (${reason}). Its last lines:`, ...lastLines.map(readable)].join("\n");
}

async function answersReady(opsUrl: string): Promise<boolean> {
  try {
    const answer = await fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(requestTimeoutMs) });
    await answer.body?.cancel();
    return answer.status === 200;
  } catch {
    return false;
  }
}

/** What a line of a log says, without its other fields. */
function readable(line: string): string {
  const { data } = saying.safeParse(parsed(line));
  if (!data) return line;
  const { msg, err, route, status, requestId } = data;
  const answered = status && [route, status, requestId].join(" ");
  return [msg, answered, err?.message].filter((text) => text !== undefined).join(": ");
}

const saying = z.object({
  msg: z.string(),
  err: z.object({ message: z.string() }).optional(),
  // Of the line about a request, which says nothing else.
  route: z.string().optional(),
  status: z.number().optional(),
  requestId: z.string().optional(),
});

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

// A line that is not a log entry, such as a crash before the log is open, counts as a warning.
function isWarning(line: string): boolean {
  const entry = parsed(line);
  if (typeof entry !== "object" || entry === null || !("level" in entry)) return true;
  return Number(entry.level) >= warningLevel;
}

/** The readable form of a log line. pino-pretty is a development dependency, so it is loaded only by `npm run dev`. */
export async function openLogFormat(): Promise<(line: string) => string> {
  const { prettyFactory } = await import("pino-pretty");
  const options = {
    colorize: process.stdout.isTTY,
    translateTime: "SYS:HH:MM:ss.l",
    ignore: "process,pid",
    singleLine: true,
  };
  const format = prettyFactory(options);
  return (line) => format(line).trimEnd();
}
