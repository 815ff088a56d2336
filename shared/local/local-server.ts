import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type GuardedProcess, type GuardedProcessOptions, startGuardedProcess } from "./guarded-process.ts";
import { freePort } from "./ports.ts";

const readyTimeoutMs = 60_000; // Long enough for a recovery after a crash on a slow disk.
const pollMs = 10;
const releaseTimeoutMs = 8_000; // A guard gives a server 5 s to stop; then it is killed.
const releaseWhileOwnedTimeoutMs = 500; // A server whose owner lives is only waited for if it is just going down.
const startsMax = 10;
const logLinesInError = 8;

/** A real server of our own on the loopback interface. */
export interface LocalServer extends Pick<GuardedProcess, "exited" | "kill"> {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Where its data is. Start another on this folder and port, and it is the same server again. */
  readonly folder: string;
  /** Stops it in order, and removes its folder if it was started without one. */
  readonly stop: () => Promise<void>;
}

export interface LocalServerOptions {
  /** Where the data is kept. Without one it is kept in a new folder that `stop()` removes. */
  folder?: string;
  /** Without one a free port is chosen. */
  port?: number;
  /** True: what was acknowledged survives a power cut. False (the default) is faster; only `kill` is survived. */
  durable?: boolean;
}

export interface ServerProgram extends GuardedProcessOptions {
  name: string;
  command: string;
  args: (port: number) => string[];
  /** The server writes this line to its log when it takes connections. */
  readyLine: string;
  folder: string;
  /** The file with its process id, which stays behind when it is killed. */
  pidFile: string;
  /** The folder that the server works in, by which its process is known. */
  workFolder: string;
}

/** A server could not be started. The message ends with the last lines of its log. */
export class ServerNotStarted extends Error {}

/**
 * Starts the program and waits until it takes connections. A chosen port that somebody takes first is chosen again.
 * @throws {ServerNotStarted} when it ends before that, or is not ready in time.
 */
export async function startServer(
  program: ServerProgram,
  fixedPort?: number,
): Promise<{ child: GuardedProcess; port: number }> {
  await waitForRelease(program);
  for (let starts = 1; ; starts += 1) {
    const port = fixedPort ?? (await freePort());
    const { child, log } = await startOnce(program, port);
    if (child !== undefined) return { child, port };
    const portTaken = /address already in use/i.test(log);
    if (portTaken && fixedPort !== undefined) {
      throw new ServerNotStarted(`${program.name} cannot start: another program uses port ${port} of 127.0.0.1.`);
    }
    // Postgres' children need a moment to notice that their parent was killed.
    const parentJustDied = log.includes("is still in use");
    if (!(portTaken || parentJustDied) || starts === startsMax) {
      const lastLines = log.trimEnd().split("\n").slice(-logLinesInError).join("\n");
      throw new ServerNotStarted(`${program.name} could not be started. The end of its log:\n${lastLines}`);
    }
    await sleep(starts * pollMs);
  }
}

// A server that lost its parent is being stopped by its guard; two servers on one folder would ruin it. A process id
// file that was left behind by a killed server is removed, because its number may belong to anybody by now.
async function waitForRelease(program: ServerProgram): Promise<void> {
  const ownerFile = join(program.folder, "owner.pid");
  const timeoutMs = isAlive(pidIn(ownerFile)) ? releaseWhileOwnedTimeoutMs : releaseTimeoutMs;
  const giveUpAt = Date.now() + timeoutMs;
  for (let pid = holderOf(program); pid !== undefined; pid = holderOf(program)) {
    if (Date.now() > giveUpAt) {
      const advice = "Is it started twice from this folder? Stop the other one first.";
      throw new ServerNotStarted(`${program.name} is running on ${program.workFolder} as process ${pid}. ${advice}`);
    }
    await sleep(pollMs);
  }
  rmSync(program.pidFile, { force: true });
  writeFileSync(ownerFile, `${process.pid}\n`);
}

function holderOf({ pidFile, workFolder }: ServerProgram): number | undefined {
  const pid = pidIn(pidFile);
  if (pid === undefined || !existsSync("/proc/self/cwd")) return isAlive(pid) ? pid : undefined;
  try {
    // The number alone is no evidence, so where there is a /proc the process must also work in our folder.
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(workFolder) ? pid : undefined;
  } catch {
    return undefined; // Gone, or of a user whose processes we may not look at, so not ours.
  }
}

function pidIn(file: string): number | undefined {
  const pid = existsSync(file) ? Number.parseInt(readFileSync(file, "utf8"), 10) : 0;
  return pid > 0 ? pid : undefined;
}

function isAlive(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function startOnce(program: ServerProgram, port: number): Promise<{ child?: GuardedProcess; log: string }> {
  const {
    name: _name,
    command,
    args,
    readyLine,
    folder,
    pidFile: _pidFile,
    workFolder: _workFolder,
    ...options
  } = program;
  const logPath = join(folder, "log");
  const logFile = openSync(logPath, "w", 0o600);
  const child = await startGuardedProcess(command, args(port), { ...options, stdio: ["ignore", logFile, logFile] });
  closeSync(logFile);
  const { process: started } = child;
  const giveUpAt = Date.now() + readyTimeoutMs;
  while (started.exitCode === null && started.signalCode === null && Date.now() < giveUpAt) {
    if (readFileSync(logPath, "utf8").includes(readyLine)) return { child, log: "" };
    await sleep(pollMs);
  }
  await child.stop();
  return { log: readFileSync(logPath, "utf8") };
}
