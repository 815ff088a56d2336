import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const startMsMax = 20_000;
const stopMsMax = 60_000;
const errorLevel = 50; // As pino counts.

/** A log line of one of our processes. */
export type LogLine = Record<string, unknown> & { msg?: string };

/** An API or a worker as an operator runs it: a process of its own, known by its ports, its log and its end. */
export class RunningProcess {
  readonly lines: LogLine[] = [];
  readonly child: ChildProcess;
  #stderr = "";
  readonly #watchers = new Set<() => void>();

  /** @param options.ipc opens a channel for messages, for what is loaded into the process before it starts. */
  constructor(
    entry: "api/main.ts" | "worker/main.ts",
    environment: Record<string, string>,
    options: { ipc?: boolean } = {},
  ) {
    const path = fileURLToPath(new URL(`../../../${entry}`, import.meta.url));
    const channel = options.ipc ? (["ipc"] as const) : [];
    this.child = spawn(process.execPath, [path], { env: environment, stdio: ["ignore", "pipe", "pipe", ...channel] });
    const { stdout, stderr } = this.child;
    if (!stdout || !stderr) throw new Error("the child has no pipes");
    stderr.on("data", (chunk: Buffer) => {
      this.#stderr += chunk.toString();
    });
    createInterface(stdout).on("line", (text) => {
      this.lines.push(readLine(text));
      for (const watch of this.#watchers) watch();
    });
    this.child.once("exit", () => {
      for (const watch of this.#watchers) watch();
    });
  }

  /** The first log line with this message, now or when it comes. @throws when the process ends before, or time is over. */
  async line(message: string): Promise<LogLine> {
    const find = () => this.lines.find((line) => line.msg === message);
    await this.#until(() => find() !== undefined || this.hasEnded);
    const found = find();
    if (!found)
      throw new Error(`the process ended without "${message}":\n${this.#stderr}${JSON.stringify(this.lines.at(-1))}`);
    return found;
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** What it logged as an error of its own. */
  get errors(): LogLine[] {
    return this.lines.filter(({ level }) => Number(level) >= errorLevel);
  }

  get stderr(): string {
    return this.#stderr;
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Asks the process to stop, as an orchestrator does. @returns its exit code. */
  async stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    if (this.hasEnded) return this.child.exitCode;
    const timer = setTimeout(() => this.child.kill("SIGKILL"), stopMsMax);
    this.child.kill("SIGCONT");
    this.child.kill(signal);
    await once(this.child, "exit");
    clearTimeout(timer);
    return this.child.exitCode;
  }

  async #until(isTrue: () => boolean): Promise<void> {
    if (isTrue()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`not seen in time:\n${this.#stderr}`)), startMsMax);
      const watch = () => {
        if (!isTrue()) return;
        clearTimeout(timer);
        this.#watchers.delete(watch);
        resolve();
      };
      this.#watchers.add(watch);
    });
  }
}

// A process that is killed while it writes leaves half a line behind.
function readLine(text: string): LogLine {
  try {
    return JSON.parse(text);
  } catch {
    return { msg: text };
  }
}
