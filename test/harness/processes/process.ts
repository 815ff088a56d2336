import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { startGuard } from "../../../local/guarded-process.ts";
import { codeLoading } from "./code-loading.ts";

const lineTimeoutMs = 120_000; // A start takes one second on an idle machine, and much longer on a busy one.
const stopTimeoutMs = 60_000;
const linesShown = 5;
const warningLevel = 40; // pino's number for "warn".
const errorLevel = 50; // pino's number for "error".

/** A log line of one of our processes. */
export type LogLine = Record<string, unknown> & { msg?: string };

/**
 * An API or a worker as an operator runs it: a separate process with its ports, its log and its exit code. It is killed
 * when the test's process dies before it.
 */
export class RunningProcess {
  readonly lines: LogLine[] = [];
  readonly child: ChildProcess;
  #stderr = "";
  #hasEnded = false;
  readonly #watchers = new Set<() => void>();

  /**
   * @param options.ipc opens a message channel, for code that is preloaded into the process.
   * @param options.checkout a folder with another release.
   */
  constructor(
    entry: "api/main.ts" | "worker/main.ts",
    environment: Record<string, string>,
    options: { ipc?: boolean; checkout?: string | undefined } = {},
  ) {
    const path = join(options.checkout ?? fileURLToPath(new URL("../../../", import.meta.url)), entry);
    const channel = options.ipc ? (["ipc"] as const) : [];
    this.child = spawn(process.execPath, [path], {
      env: { ...codeLoading, ...environment },
      stdio: ["ignore", "pipe", "pipe", ...channel],
    });
    const { pid, stdout, stderr } = this.child;
    if (pid === undefined || !stdout || !stderr) throw new Error(`${entry} could not be started`);
    const dismissGuard = startGuard(pid, { stopSignal: "SIGKILL" });
    stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    createInterface(stdout).on("line", (text) => {
      this.lines.push(readLine(text));
      for (const watch of this.#watchers) watch();
    });
    this.child.once("exit", dismissGuard);
    // After its exit, and after its last line was read.
    this.child.once("close", () => {
      this.#hasEnded = true;
      for (const watch of this.#watchers) watch();
    });
  }

  /** The first log line with this message, logged already or later. @throws if the process ends first, and on a timeout. */
  async line(message: string): Promise<LogLine> {
    const find = () => this.lines.find((line) => line.msg === message);
    const isInTime = await this.#until(() => find() !== undefined || this.hasEnded);
    const found = find();
    if (found) return found;
    const last = this.lines.slice(-linesShown).map((line) => JSON.stringify(line));
    const problem = isInTime ? "the process ended without" : "the process has not logged in time";
    throw new Error([`${problem} "${message}":`, this.#stderr, ...last].join("\n"));
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** What it wrote that is no entry of the log, a JSON object with level, time and message: lines, and all of stderr. */
  get noEntries(): unknown[] {
    const isEntry = ({ level, time, msg }: LogLine) =>
      typeof level === "number" && typeof time === "number" && typeof msg === "string";
    return [...this.lines.filter((line) => !isEntry(line)), ...(this.#stderr === "" ? [] : [this.#stderr])];
  }

  /** The lines that the process logged as errors. */
  get errors(): LogLine[] {
    return this.lines.filter(({ level }) => Number(level) >= errorLevel);
  }

  /** The lines that the process logged as warnings or errors. */
  get warnings(): LogLine[] {
    return this.lines.filter(({ level }) => Number(level) >= warningLevel);
  }

  get stderr(): string {
    return this.#stderr;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Asks the process to stop, and kills it after the timeout, as an orchestrator does. @returns its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM", timeoutMs = stopTimeoutMs): Promise<number | null> {
    if (this.hasEnded) return this.child.exitCode;
    const timer = setTimeout(() => this.child.kill("SIGKILL"), timeoutMs);
    this.child.kill("SIGCONT");
    this.child.kill(signal);
    await once(this.child, "close");
    clearTimeout(timer);
    return this.child.exitCode;
  }

  /** Kills the process and waits for its exit: the fast way to end it after a test. */
  async destroy(): Promise<void> {
    if (this.hasEnded) return;
    this.child.kill("SIGKILL");
    await once(this.child, "close");
  }

  /** @returns false at the timeout. */
  async #until(isTrue: () => boolean): Promise<boolean> {
    if (isTrue()) return true;
    return new Promise((resolve) => {
      const end = (isInTime: boolean) => {
        clearTimeout(timer);
        this.#watchers.delete(watch);
        resolve(isInTime);
      };
      const timer = setTimeout(() => end(false), lineTimeoutMs);
      const watch = () => {
        if (isTrue()) end(true);
      };
      this.#watchers.add(watch);
    });
  }
}

// A process that is killed while it writes leaves an incomplete line.
function readLine(text: string): LogLine {
  try {
    return JSON.parse(text);
  } catch {
    return { msg: text };
  }
}
