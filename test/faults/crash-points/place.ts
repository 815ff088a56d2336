import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { seesWorkers } from "../../harness/assertions/metrics.ts";
import { RunningProcess } from "../../harness/processes/process.ts";
import { becomes } from "../../harness/assertions/eventually.ts";
import { lastWords, type Order, type Point } from "./points.ts";

const preload = `--import=${new URL("./preload.ts", import.meta.url).href}`;
const startMsMax = 60_000;
const obeyMsMax = 5_000;

/** How a process ended. */
export interface Death {
  place: Place;
  /** The place and step where it killed itself, or undefined where it ended in another way. */
  said: string;
  signal: NodeJS.Signals | null;
}

/** Where an API or a worker runs, and is started again when it died, as an orchestrator would. */
export class Place {
  readonly kind: "api" | "worker";
  readonly number: number;
  /** What the next process here is told before it starts. */
  order: Order = null;
  onDeath: (death: Death) => void = () => undefined;
  /** Whether a dead process is replaced at once. */
  restarts = true;
  /** All that ever ran here, the last one now. */
  readonly processes: RunningProcess[] = [];
  readonly #environment: Record<string, string>;
  #closed = false;

  constructor(kind: "api" | "worker", number: number, environment: Record<string, string>) {
    this.kind = kind;
    this.number = number;
    this.#environment = { ...environment, NODE_OPTIONS: preload };
    this.start();
  }

  /** Starts a process where none runs. */
  start(): void {
    if (this.#closed || (this.process && !this.process.hasEnded)) return;
    const process = new RunningProcess(`${this.kind}/main.ts`, this.#environment, { ipc: true });
    this.processes.push(process);
    // Only then its last words have been read.
    process.child.once("close", (_code, signal) => {
      this.onDeath({ place: this, said: process.stderr, signal });
      if (this.restarts) this.start();
    });
    process.child.on("error", () => undefined); // An order that reached nobody: the process had just died.
    process.child.send({ order: this.order });
  }

  get process(): RunningProcess | undefined {
    return this.processes.at(-1);
  }

  /** Tells the process that runs here where to die, and waits until it knows. */
  async arm(order: Order): Promise<void> {
    this.order = order;
    const child = this.process?.child;
    if (!child?.connected) return;
    const known = new AbortController();
    const { signal } = known;
    const obeyed = Promise.race([
      once(child, "message", { signal }),
      once(child, "exit", { signal }),
      sleep(obeyMsMax),
    ]);
    child.send({ order }, () => undefined);
    await obeyed.finally(() => known.abort());
  }

  signal(signal: NodeJS.Signals): void {
    this.process?.kill(signal);
  }

  /** Where callers reach the API that runs here, if one listens. */
  get url(): string | undefined {
    return this.#urlAt("listening");
  }

  /** Waits until the process takes searches, or jobs. @throws where it does not. */
  async ready(): Promise<void> {
    this.start();
    const isReady = async () => {
      const opsUrl = this.#urlAt("ops port open");
      if (!opsUrl || !(await fetch(`${opsUrl}/readyz`)).ok) return false;
      return this.kind === "worker" || seesWorkers({ opsUrl });
    };
    if (!(await becomes(isReady, startMsMax)))
      throw new Error(`${this.kind} ${this.number} was not ready in time: ${this.process?.stderr ?? ""}`);
  }

  #urlAt(message: string): string | undefined {
    const { process } = this;
    const line = process?.hasEnded ? undefined : process?.lines.find(({ msg }) => msg === message);
    return line && `http://127.0.0.1:${String(line["port"])}`;
  }

  /** What a process said that no sound one says: errors in its log, or anything on stderr but the words of its death. */
  defects(): string[] {
    return this.processes.flatMap((process) => {
      const { stderr } = process;
      const errors = process.errors.map((line) => JSON.stringify(line));
      const told = stderr === "" || /^killed itself \w+ \w+\n$/.test(stderr) ? [] : [stderr];
      return [...errors, ...told].map((text) => `${this.kind} ${this.number}: ${text.slice(0, 500)}`);
    });
  }

  kill(): void {
    this.#closed = true;
    this.process?.kill("SIGKILL");
  }
}

/** Whether a process died where it was told to, by its own hand. */
export const isAt = (death: Death, point: Point) => death.signal === "SIGKILL" && death.said.endsWith(lastWords(point));
