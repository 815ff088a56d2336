/**
 * Processes that must never outlive the process that started them. Each leads its own process group, so that Ctrl-C in the
 * terminal reaches only the parent, which stops them in order. If the parent dies (kill -9, a killed test worker), a guard
 * process per child sees the end of a pipe that only the parent held open, and stops the child.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";

const stopTimeoutMs = 5_000; // A process that is still running then is killed.

export interface GuardedProcess {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Resolves with the reason when the process has ended: "exit code 1" or "signal SIGKILL". */
  readonly exited: Promise<string>;
  /** Sends the stop signal, kills the process after 5 s, and returns when it has ended. It may be called again. */
  readonly stop: () => Promise<void>;
  readonly kill: (signal: NodeJS.Signals) => void;
}

export interface GuardedProcessOptions extends SpawnOptions {
  /** The signal that asks it to stop: SIGTERM by default. */
  stopSignal?: NodeJS.Signals;
  /** A folder that the guard deletes if the parent dies before it stops the process. */
  throwawayFolder?: string | undefined;
}

/**
 * Starts a process that runs until it ends, until `stop()`, or until the parent dies.
 * @throws if the program cannot be started.
 */
export async function startGuardedProcess(
  command: string,
  args: string[],
  options: GuardedProcessOptions,
): Promise<GuardedProcess> {
  const { stopSignal = "SIGTERM", throwawayFolder = "", ...spawnOptions } = options;
  const child = spawn(command, args, { ...spawnOptions, detached: true });
  await once(child, "spawn");
  const { pid } = child;
  if (pid === undefined) throw new Error(`${command} was started without a process id`);
  child.unref();
  const dismissGuard = startGuard(pid, { stopSignal, throwawayFolder });
  const exited = endOf(child);
  void exited.then(dismissGuard);
  const kill = (signal: NodeJS.Signals) => void child.kill(signal);
  return { pid, process: child, exited, kill, stop: () => stopWithin(stopTimeoutMs, exited, kill, stopSignal) };
}

// $1 process id, $2 signal, $3 folder. `read` succeeds when we dismiss the guard and fails when our end of the pipe is
// gone. The wait is bounded (50 x 0.1 s); then the process is killed.
const guardScript = `
read -r dismissed && exit
kill -s "$2" "$1"; kill -s CONT "$1"
tries=0
while kill -s 0 "$1" && [ "$tries" -lt 50 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -s KILL "$1"
[ -z "$3" ] || rm -rf "$3"`;

/**
 * Starts a guard that outlives this process by moments: it stops the process `pid` and removes the folder when we die.
 * @returns dismisses the guard; to be called when the process has ended.
 */
export function startGuard(
  pid: number,
  { stopSignal, throwawayFolder = "" }: { stopSignal: NodeJS.Signals; throwawayFolder?: string },
): () => void {
  const args = ["-c", guardScript, "serpmill-guard", String(pid), stopSignal.replace(/^SIG/, ""), throwawayFolder];
  const guard = spawn("/bin/sh", args, { detached: true, cwd: "/", stdio: ["pipe", "ignore", "ignore"] });
  guard.unref();
  guard.stdin.on("error", () => {}); // The guard may be gone before us when the whole machine is stopping.
  if (guard.stdin instanceof Socket) guard.stdin.unref();
  return () => void guard.stdin.end("dismissed\n");
}

function endOf(child: ChildProcess): Promise<string> {
  if (child.exitCode !== null) return Promise.resolve(`exit code ${child.exitCode}`);
  if (child.signalCode !== null) return Promise.resolve(`signal ${child.signalCode}`);
  const ended = Promise.withResolvers<string>();
  child.once("exit", (code, signal) => ended.resolve(signal === null ? `exit code ${code}` : `signal ${signal}`));
  return ended.promise;
}

async function stopWithin(
  timeoutMs: number,
  exited: Promise<string>,
  kill: (signal: NodeJS.Signals) => void,
  stopSignal: NodeJS.Signals,
): Promise<void> {
  kill(stopSignal);
  kill("SIGCONT"); // A process that a test has paused hears nothing else.
  const killing = setTimeout(() => kill("SIGKILL"), timeoutMs);
  await exited;
  clearTimeout(killing);
}
