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
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type GuardedProcess, type GuardedProcessOptions, startGuardedProcess } from "./guarded-process.ts";
import { freePort } from "./ports.ts";

const readyTimeoutMs = 60_000; // Long enough for a recovery after a crash on a slow disk.
const pollMs = 10;
const releaseTimeoutMs = 8_000; // A guard kills its server after 5 s.
const releaseWhileOwnedTimeoutMs = 500; // If the owner of a server is alive, the server may only be in the middle of its stop.
const startsMax = 10;
const logLinesInError = 8;

/** A Postgres or Redis process on the loopback interface. */
export interface LocalServer extends Pick<GuardedProcess, "exited" | "kill"> {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Where its data is. Another start with this folder and port is the same server again. */
  readonly folder: string;
  /** Stops it in order, and deletes its folder if it was started without one. */
  readonly stop: () => Promise<void>;
}

export interface LocalServerOptions {
  /** Where the data is. Without it the data is in a new folder, which `stop()` deletes. */
  folder?: string;
  /** Without it a free port is chosen. */
  port?: number;
  /** Whether acknowledged writes survive a power cut. By default they only survive `kill`, which is faster. */
  durable?: boolean;
}

interface ServerProgram extends GuardedProcessOptions {
  name: string;
  command: string;
  args: (port: number) => string[];
  /** The line that the server logs when it accepts connections. */
  readyLine: string;
  folder: string;
  /** The file with its process id. It stays behind if the server is killed. */
  pidFile: string;
  /** The working folder of the server, which identifies its process. */
  workFolder: string;
}

/** A server could not be started. The message ends with the last lines of its log. */
export class ServerNotStarted extends Error {}

/**
 * Starts the program and waits until it accepts connections. If another program takes a chosen port first, it retries with
 * another port.
 * @returns the server without its address. `stop()` also deletes its throwaway folder.
 * @throws {ServerNotStarted} if it ends before that, or is not ready after 60 s. A throwaway folder is deleted then.
 */
export async function startServer(program: ServerProgram, fixedPort?: number): Promise<Omit<LocalServer, "url">> {
  const { folder, throwawayFolder } = program;
  const remove = async () => {
    if (throwawayFolder !== undefined) await rm(throwawayFolder, { recursive: true, force: true });
  };
  try {
    const { child, port } = await startOnPort(program, fixedPort);
    const stop = async () => {
      await child.stop();
      await remove();
    };
    return { port, pid: child.pid, folder, exited: child.exited, kill: child.kill, stop };
  } catch (error) {
    await remove();
    throw error;
  }
}

async function startOnPort(program: ServerProgram, fixedPort: number | undefined) {
  await waitForRelease(program);
  for (let starts = 1; ; starts += 1) {
    const port = fixedPort ?? (await freePort());
    const { child, log } = await startOnce(program, port);
    if (child !== undefined) return { child, port };
    const portTaken = /address already in use/i.test(log);
    if (portTaken && fixedPort !== undefined) {
      throw new ServerNotStarted(`${program.name} cannot start: another program uses port ${port} of 127.0.0.1.`);
    }
    // The children of a killed Postgres need a moment to notice and release its memory.
    const parentJustDied = log.includes("is still in use");
    if (!(portTaken || parentJustDied) || starts === startsMax) {
      const lastLines = log.trimEnd().split("\n").slice(-logLinesInError).join("\n");
      throw new ServerNotStarted(`${program.name} could not be started. The end of its log:\n${lastLines}`);
    }
    await sleep(starts * pollMs);
  }
}

// Waits until no server uses the folder, because two servers on one folder would ruin the data: a server whose parent died
// is still being stopped by its guard. A process id file of a killed server is deleted, because the id may be reused by now.
async function waitForRelease(program: ServerProgram): Promise<void> {
  const ownerFile = join(program.folder, "owner.pid");
  const timeoutMs = isAlive(pidIn(ownerFile)) ? releaseWhileOwnedTimeoutMs : releaseTimeoutMs;
  const giveUpAt = Date.now() + timeoutMs;
  for (let pid = serverUsingFolder(program); pid !== undefined; pid = serverUsingFolder(program)) {
    if (Date.now() > giveUpAt) {
      const advice = "Was it started twice from this folder? Stop the other one first.";
      throw new ServerNotStarted(`${program.name} already runs on ${program.workFolder} as process ${pid}. ${advice}`);
    }
    await sleep(pollMs);
  }
  rmSync(program.pidFile, { force: true });
  writeFileSync(ownerFile, `${process.pid}\n`);
}

function serverUsingFolder({ pidFile, workFolder }: ServerProgram): number | undefined {
  const pid = pidIn(pidFile);
  if (pid === undefined || !existsSync("/proc/self/cwd")) return isAlive(pid) ? pid : undefined;
  try {
    // A process id alone is no evidence. With /proc, the process must also have our working folder.
    return readlinkSync(`/proc/${pid}/cwd`) === realpathSync(workFolder) ? pid : undefined;
  } catch {
    return undefined; // It has ended, or belongs to a user whose processes we cannot inspect, so it is not ours.
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
  const { command, args, readyLine, folder, ...options } = program;
  const logPath = join(folder, "log");
  const logFile = openSync(logPath, "w", 0o600);
  const child = await startGuardedProcess(command, args(port), { ...options, stdio: ["ignore", logFile, logFile] });
  closeSync(logFile);
  const { process: running } = child;
  const giveUpAt = Date.now() + readyTimeoutMs;
  while (running.exitCode === null && running.signalCode === null && Date.now() < giveUpAt) {
    if (readFileSync(logPath, "utf8").includes(readyLine)) return { child, log: "" };
    await sleep(pollMs);
  }
  await child.stop();
  return { log: readFileSync(logPath, "utf8") };
}
