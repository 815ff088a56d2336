import { keysOf } from "../../../shared/credits/redis-keys.ts";
import type { Organization } from "../../harness/processes/service.ts";
import type { ProcessExit } from "../../harness/processes/supervised-process.ts";
import type { Attempt } from "../audit/evidence.ts";
import { searchWithRetries } from "./caller.ts";
import type { Case } from "./cases.ts";
import { type CrashableProcess, diedAt } from "./crashable-process.ts";
import { HoldWatch } from "./hold-watch.ts";
import type { Behaviour, IsolatedStack } from "./isolated-stack.ts";
import type { Order, Point } from "./points.ts";

const retryForMs = 60_000;
// Less than the short deadline. A slow machine needs most of it until the second request or the disconnect has arrived.
const slowMs = 2_500;
// The search makes two such calls: together they outlast the wait of a stopping worker, and each stays within its timeout.
const halfAStopMs = 6_500;

/** One run of a case: which process dies where, what the callers sent, and what they saw. */
export class CaseRun {
  readonly stack: IsolatedStack;
  readonly case: Case;
  readonly customer: Organization & { grantedMils: number };
  readonly keyword: string;
  readonly key: string | undefined;
  readonly holds: HoldWatch;
  readonly attempts: Attempt[] = [];
  /** Processes that died at the point of the case. */
  readonly deaths: { kind: "api" | "worker"; point: Point }[] = [];
  /** Second workers that had already reached the point when the first one died. */
  twinDeaths = 0;
  /** Processes that killed themselves at another point. */
  readonly strayDeaths: string[] = [];
  readonly #disconnect = new AbortController();
  readonly #killed = new Set<object | undefined>();
  #workerDeaths = 0;

  constructor(stack: IsolatedStack, one: Case, customer: CaseRun["customer"]) {
    this.stack = stack;
    this.case = one;
    this.customer = customer;
    this.holds = new HoldWatch(stack.service, customer.organizationId);
    this.keyword = `crash ${customer.organizationId}`;
    this.key = one.keyed ? `key-of-${customer.organizationId}` : undefined;
  }

  get deathsDue(): number {
    return this.case.apis.length + this.case.workers.length;
  }

  /** Runs the case until every caller has its outcome. */
  async run(): Promise<void> {
    const { stack } = this;
    for (const process of stack.processes) process.onExit = (exit) => this.#recordExit(process, exit);
    await Promise.all([
      ...stack.apis.map((process, number) => process.arm(this.#orderAt(this.case.apis[number]))),
      ...(this.case.plot === "maintenance starts"
        ? []
        : stack.workers.map((process) => process.arm(this.#workerOrder))),
    ]);
    await this.#plots[this.case.plot]();
  }

  readonly #plots: Record<Case["plot"], () => Promise<void>> = {
    search: () => this.#search(),
    cold: () => this.#search(),
    late: () => this.#late(),
    "charged late": () => this.#chargedLate(),
    disconnect: () => this.#disconnectAtProvider(),
    "charged disconnect": () => this.#search(),
    repeat: () => this.#repeat(),
    stopping: () => this.#stopping(),
    "no second answer": () => this.#noSecondAnswer(),
    "maintenance starts": () => this.#maintenanceStarts(),
  };

  async #search(firstApi: 0 | 1 = 0, onAttempt: () => void = () => undefined): Promise<void> {
    const { keyword, key } = this;
    const { organizationId, token, tokenId } = this.customer;
    const disconnect = this.#disconnect.signal;
    const request = { organizationId, token, tokenId, keyword, key, firstApi, disconnect, retryForMs, onAttempt };
    this.attempts.push(...(await searchWithRetries(this.stack, request)));
  }

  async #late(): Promise<void> {
    this.stack.onCall = () => {
      this.stack.onCall = () => undefined;
      for (const worker of this.stack.workers) worker.freeze();
    };
    await this.#search(0, () => this.#letWorkersRun());
  }

  async #chargedLate(): Promise<void> {
    for (const worker of this.stack.workers) worker.restartsOnExit = false;
    await this.#search(0, () => this.#letWorkersRun());
  }

  async #disconnectAtProvider(): Promise<void> {
    this.stack.behaviour = slow;
    this.stack.onCall = () => this.#disconnect.abort();
    await this.#search();
  }

  async #repeat(): Promise<void> {
    this.stack.behaviour = slow;
    let second: Promise<void> | undefined;
    this.stack.onCall = () => {
      second ??= this.#search(0);
    };
    await this.#search(1);
    await second;
  }

  async #stopping(): Promise<void> {
    const isFirstCall = (nth: number) => nth % 2 === 1;
    const isSlow = (nth: number) => nth <= 2 * this.case.workers.length;
    this.stack.behaviour = (nth) => ({ ms: isSlow(nth) ? halfAStopMs : 50, fails: isSlow(nth) && isFirstCall(nth) });
    this.stack.onCall = () => {
      const nth = this.stack.calls.length;
      if (isSlow(nth) && isFirstCall(nth)) for (const worker of this.stack.workers) worker.terminate();
    };
    await this.#search();
  }

  async #noSecondAnswer(): Promise<void> {
    // The second run's call, and its retry.
    this.stack.behaviour = (nth) => ({ ms: 50, fails: nth === 2 || nth === 3 });
    await this.#search();
  }

  async #maintenanceStarts(): Promise<void> {
    await this.#search();
    await this.stack.service.redis.del(keysOf(this.customer.organizationId).balance);
    for (const worker of this.stack.workers) {
      this.#killed.add(worker.run);
      worker.order = this.#workerOrder;
      worker.kill();
    }
  }

  /** Resumes frozen workers, and replaces dead ones. */
  #letWorkersRun(): void {
    for (const worker of this.stack.workers) {
      worker.restartsOnExit = true;
      worker.resume();
      worker.start();
    }
  }

  #orderAt(point: Point | undefined): Order {
    return point ? { ...point, organizationId: this.customer.organizationId } : null;
  }

  get #workerOrder(): Order {
    return this.#orderAt(this.case.workers[this.#workerDeaths]);
  }

  #recordExit(process: CrashableProcess, exit: ProcessExit): void {
    const { run, signal } = exit;
    const wasAsked = this.case.plot === "stopping" && signal !== "SIGKILL" && run.stderr === "";
    if (wasAsked || this.#killed.has(run)) return;
    const { kind } = process;
    const point = kind === "api" ? this.case.apis[process.number] : this.case.workers[this.#workerDeaths];
    if (!point || !diedAt(exit, point)) {
      const last = this.deaths.findLast((death) => death.kind === kind);
      // Both workers were at the step before the order of the second was withdrawn. One more death must not matter.
      if (last && diedAt(exit, last.point)) this.twinDeaths += 1;
      else this.strayDeaths.push(`${process.name} ended with ${signal}: ${run.stderr.slice(0, 300)}`);
      return;
    }
    this.deaths.push({ kind, point });
    if (kind === "api") process.order = null;
    else this.#afterWorkerDeath();
  }

  #afterWorkerDeath(): void {
    const { plot } = this.case;
    this.#workerDeaths += 1;
    for (const worker of this.stack.workers) void worker.arm(this.#workerOrder);
    if (plot === "charged late") for (const worker of this.stack.workers) worker.freeze();
    if (plot === "charged disconnect") this.#disconnect.abort();
  }
}

const slow: Behaviour = () => ({ ms: slowMs, fails: false });
