import { type Proxy, startProxy } from "../../harness/servers/proxy.ts";
import { RunningProcess } from "../../harness/processes/process.ts";

/** The servers that a process reaches through proxies of its own. */
export interface Ways {
  postgres: Proxy;
  redis: Proxy;
  /** Where callers reach an API; where a worker reaches the provider. */
  outside: Proxy;
}

const stopMsMax = 20_000;

/** A place where an API or a worker runs, is killed, frozen and started anew, at addresses that stay the same. */
export class Slot {
  readonly name: string;
  readonly ways: Ways;
  /** All that ever ran here, the last one now. */
  readonly processes: RunningProcess[] = [];
  /** When this process could not be expected to answer its callers in time, by `performance.now()`. */
  readonly unwell: { fromMs: number; toMs: number }[] = [];
  /** When a process was killed here without a word, by `performance.now()`. */
  readonly killedAtMs: number[] = [];
  readonly #kind: "api" | "worker";
  readonly #environment: Record<string, string>;
  #wantedDead = new Set<RunningProcess>();

  private constructor(kind: "api" | "worker", place: number, ways: Ways, environment: Record<string, string>) {
    this.name = `${kind} ${place}`;
    this.ways = ways;
    this.#kind = kind;
    this.#environment = environment;
  }

  static async open(options: {
    kind: "api" | "worker";
    place: number;
    addresses: { postgres: string; redis: string; outside: string };
    environment: Record<string, string>;
  }): Promise<Slot> {
    const { kind, place, addresses } = options;
    const [postgres, redis, outside] = await Promise.all([
      startProxy(addresses.postgres),
      startProxy(addresses.redis),
      startProxy(addresses.outside),
    ]);
    const environment = {
      ...options.environment,
      DATABASE_URL: postgres.url,
      REDIS_URL: redis.url,
      ...(kind === "worker" && { SERPER_BASE_URL: outside.url }),
      API_PORT: "0",
      API_OPS_PORT: "0",
      WORKER_OPS_PORT: "0",
    };
    return new Slot(kind, place, { postgres, redis, outside }, environment);
  }

  get process(): RunningProcess | undefined {
    return this.processes.at(-1);
  }

  get isRunning(): boolean {
    return this.process !== undefined && !this.process.hasEnded;
  }

  /** Starts a process here, unless one runs. Does not wait for it. */
  start(): void {
    if (this.isRunning) return;
    const process = new RunningProcess(`${this.#kind}/main.ts`, this.#environment);
    this.processes.push(process);
    if (this.#kind === "worker") return;
    const leadThere = async () => {
      const { port } = await process.line("listening");
      this.ways.outside.lead(`http://127.0.0.1:${String(port)}`);
    };
    void leadThere().catch(() => undefined); // Killed before it listened.
  }

  kill(): void {
    this.killedAtMs.push(performance.now());
    this.#end("SIGKILL");
  }

  /** Asks it to stop, as an orchestrator that replaces it, and starts the next one once it has. */
  async replace(): Promise<void> {
    const { process } = this;
    if (!process) return;
    const gone = new Promise((resolve) => process.child.once("exit", resolve));
    this.#end("SIGTERM");
    const killing = setTimeout(() => process.kill("SIGKILL"), stopMsMax);
    if (this.isRunning) await gone;
    clearTimeout(killing);
    this.start();
  }

  #end(signal: NodeJS.Signals): void {
    if (!this.process) return;
    this.#wantedDead.add(this.process);
    this.process.kill("SIGCONT");
    this.process.kill(signal);
  }

  /** Names what ended although nobody wanted it to, and what was said on stderr. */
  accidents(): string[] {
    return this.processes.flatMap((process) => {
      const told = process.stderr === "" ? [] : [`${this.name} said on stderr: ${process.stderr.slice(0, 500)}`];
      const isAccident = process.hasEnded && !this.#wantedDead.has(process);
      return isAccident ? [...told, `${this.name} ended by itself, with ${process.child.exitCode}`] : told;
    });
  }

  /** The address of the running process' ops port. */
  async opsUrl(): Promise<string> {
    if (!this.process) throw new Error(`${this.name} does not run`);
    return `http://127.0.0.1:${String((await this.process.line("ops port open")).port)}`;
  }

  mend(): void {
    for (const way of Object.values(this.ways)) way.mend();
    this.process?.kill("SIGCONT");
  }

  async close(): Promise<void> {
    if (this.process) this.#wantedDead.add(this.process);
    await this.process?.stop();
    await Promise.all([this.ways.postgres.close(), this.ways.redis.close(), this.ways.outside.close()]);
  }
}
