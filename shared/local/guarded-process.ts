/**
 * Processes that we start and that must never outlive us. Each leads a process group of its own, so Ctrl-C in the
 * terminal reaches only us and we stop them in order. Should we die without a word (kill -9, a killed test worker),
 * the guard beside each child notices by the end of a pipe that only we hold, and stops it for us.
 */
import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";

const stopTimeoutMs = 5_000; // A child that has not stopped by then is killed.

export interface GuardedProcess {
  readonly pid: number;
  readonly process: ChildProcess;
  /** Resolves when the process has ended, with the reason as words: "exit code 1", "signal SIGKILL". */
  readonly exited: Promise<string>;
  /** Asks the process to stop, kills it if it does not in time, and returns when it is gone. A second call waits too. */
  readonly stop: () => Promise<void>;
  readonly kill: (signal: NodeJS.Signals) => void;
}

export interface GuardedProcessOptions extends SpawnOptions {
  /** What asks it to stop: SIGTERM by default. */
  stopSignal?: NodeJS.Signals;
  /** A folder that goes away with the child if we die before stopping it. */
  throwawayFolder?: string | undefined;
}

/**
 * Starts a process that is stopped by `stop()`, or by its guard when we are gone.
 * @throws when the program cannot be started at all.
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
  const exited = endOf(child).then((reason) => {
    dismissGuard();
    return reason;
  });
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
