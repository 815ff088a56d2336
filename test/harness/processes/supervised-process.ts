import { becomes } from "../assertions/eventually.ts";
import { seesWorkers } from "../assertions/metrics.ts";
import { RunningProcess } from "./process.ts";

const stopTimeoutMs = 20_000; // The grace period of an orchestrator.

/** How one run of a supervised process ended. */
export interface ProcessExit {
  process: SupervisedProcess;
  run: RunningProcess;
  signal: NodeJS.Signals | null;
}

export interface SupervisedProcessOptions {
  kind: "api" | "worker";
  number: number;
  environment: Record<string, string>;
  /** Opens a channel for messages to each run. */
  ipc?: boolean;
  /** Called with each run, before any of its output is read. */
  onStart?: (run: RunningProcess) => void;
  /** Output to stderr that is no defect; a run that writes it may also end by itself. */
  expectedStderr?: RegExp;
}

/** Settings of an API and a worker that search the sandbox, on ports that the system chooses. */
export const usualSettings = { SERP_PROVIDERS: "sandbox", API_PORT: "0", API_OPS_PORT: "0", WORKER_OPS_PORT: "0" };

/**
 * One API or worker under supervision, as an orchestrator runs it: one run after the other, each a separate process.
 *
 *   stopped ── start() ──▶ running ── kill(), terminate(), or by itself ──▶ stopped
 *                          running ◀── freeze(), resume() ──▶ frozen
 *   stopped ── at once, while `restartsOnExit` ──▶ running
 *   close() ends it permanently. Every run dies with the process that started it.
 */
export class SupervisedProcess {
  readonly kind: "api" | "worker";
  readonly number: number;
  readonly name: string;
  /** Whether a run that ended is replaced at once. */
  restartsOnExit = false;
  onExit: (exit: ProcessExit) => void = () => undefined;
  /** Every run, the current one last. */
  readonly runs: RunningProcess[] = [];
  /** When runs were killed, or killed themselves, without a chance to finish anything; by `performance.now()`. */
  readonly killedAtMs: number[] = [];
  readonly #options: SupervisedProcessOptions;
  readonly #requestedEnds = new Set<RunningProcess>();
  #isClosed = false;

  constructor(options: SupervisedProcessOptions) {
    this.#options = options;
    this.kind = options.kind;
    this.number = options.number;
    this.name = `${options.kind} ${options.number}`;
  }

  get run(): RunningProcess | undefined {
    return this.runs.at(-1);
  }

  get isRunning(): boolean {
    return this.run !== undefined && !this.run.hasEnded;
  }

  /** Where callers reach the API that runs; undefined until it listens, and after its end. */
  get url(): string | undefined {
    return this.#addressIn("listening");
  }

  get opsUrl(): string | undefined {
    return this.#addressIn("ops port open");
  }

  /** Starts a run unless there is one. Does not wait for it. */
  start(): void {
    if (!this.#isClosed && !this.isRunning) this.#launch();
  }

  /** Starts a run unless there is one, and waits until it takes searches or jobs. @throws where it does not. */
  async ready(): Promise<void> {
    this.start();
    const isReady = async () => {
      const { opsUrl } = this;
      if (opsUrl === undefined || !(await fetch(`${opsUrl}/readyz`)).ok) return false;
      // The line with its address comes up to 100 ms after it listens.
      return this.kind === "worker" || (this.url !== undefined && seesWorkers({ opsUrl }));
    };
    if (!(await becomes(isReady)))
      throw new Error(`${this.name} was not ready in time: ${this.run?.stderr ?? "never started"}`);
  }

  /** Ends the current run without a chance to finish anything. */
  kill(): void {
    if (!this.isRunning) return;
    this.killedAtMs.push(performance.now());
    this.#end(this.run, "SIGKILL");
  }

  /** Asks the current run to stop. */
  terminate(): void {
    this.#end(this.run, "SIGTERM");
  }

  freeze(): void {
    this.run?.kill("SIGSTOP");
  }

  resume(): void {
    this.run?.kill("SIGCONT");
  }

  /** Asks the current run to stop, kills it after the grace period, and then starts the next. */
  async replace(): Promise<void> {
    await this.#stop(this.run);
    this.start();
  }

  /**
   * Starts the next run, and asks the one before it to stop once the next is ready and `beforeStop` has resolved.
   * @returns the exit code of the one that stopped.
   */
  async rollOver(beforeStop: () => Promise<void> = async () => undefined): Promise<number | null> {
    const old = this.run;
    this.#launch();
    await this.ready();
    await beforeStop();
    return this.#stop(old);
  }

  /** Defects of the runs: a logged error, output to stderr, or an exit that was not requested. */
  defects(): string[] {
    const expected = this.#options.expectedStderr;
    return this.runs.flatMap((run) => {
      const isExpected = run.stderr !== "" && expected?.test(run.stderr) === true;
      const found = run.errors.map((line) => `logged an error: ${JSON.stringify(line)}`);
      if (run.stderr !== "" && !isExpected) found.push(`wrote to stderr: ${run.stderr}`);
      if (run.hasEnded && !this.#requestedEnds.has(run) && !isExpected)
        found.push(`ended by itself with ${run.child.signalCode ?? `exit code ${run.child.exitCode}`}`);
      return found.map((defect) => `${this.name} ${defect.slice(0, 600)}`);
    });
  }

  /** Kills every run that is left and waits for its end. Nothing is started any more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(
      this.runs.map(async (run) => {
        this.#end(run, "SIGKILL");
        await run.destroy();
      }),
    );
  }

  #launch(): RunningProcess {
    const { kind, environment, ipc = false, onStart } = this.#options;
    const run = new RunningProcess(`${kind}/main.ts`, environment, { ipc });
    this.runs.push(run);
    run.child.once("exit", (_code, signal) => {
      if (signal === "SIGKILL" && !this.#requestedEnds.has(run)) this.killedAtMs.push(performance.now());
    });
    // All of its output has been read now.
    run.child.once("close", (_code, signal) => {
      this.onExit({ process: this, run, signal });
      if (this.restartsOnExit) this.start();
    });
    onStart?.(run);
    return run;
  }

  async #stop(run: RunningProcess | undefined): Promise<number | null> {
    if (!run) return null;
    if (!run.hasEnded) this.#requestedEnds.add(run);
    return run.stop("SIGTERM", stopTimeoutMs);
  }

  #end(run: RunningProcess | undefined, signal: NodeJS.Signals): void {
    if (!run || run.hasEnded) return;
    this.#requestedEnds.add(run);
    run.kill(signal);
    run.kill("SIGCONT"); // A frozen process handles other signals only after SIGCONT.
  }

  #addressIn(message: string): string | undefined {
    const line = this.isRunning ? this.run?.lines.find(({ msg }) => msg === message) : undefined;
    return line && `http://127.0.0.1:${String(line["port"])}`;
  }
}
