import { keysOf } from "../../../shared/credits/holds.ts";
import { type Attempt, ask } from "./caller.ts";
import type { Case } from "./cases.ts";
import type { Behaviour, IsolatedStack } from "./isolated-stack.ts";
import { HoldWatch } from "./hold-watch.ts";
import { type Death, isAt } from "./place.ts";
import type { Order, Point } from "./points.ts";

const patienceMs = 60_000;
const slowMs = 1_500;
// Of two calls, so that the search takes longer than a stopping worker waits, and neither call longer than it may.
const halfAStopMs = 6_500;

/** One case on its way: who has to die where, who asked, and what came of it. */
export class CaseRun {
  readonly lane: IsolatedStack;
  readonly case: Case;
  readonly customer: { organizationId: string; token: string; grantedMils: number };
  readonly keyword: string;
  readonly key: string | undefined;
  readonly holds: HoldWatch;
  readonly attempts: Attempt[] = [];
  /** Those who died where they should. */
  readonly deaths: { death: Death; point: Point }[] = [];
  /** Those who died there too. */
  readonly twins: Death[] = [];
  /** Those who died elsewhere, and not by the plot's hand. */
  readonly accidents: Death[] = [];
  readonly #gone = new AbortController();
  readonly #killed = new Set<object | undefined>();
  #workerDeaths = 0;

  constructor(lane: IsolatedStack, one: Case, customer: CaseRun["customer"]) {
    this.lane = lane;
    this.case = one;
    this.customer = customer;
    this.holds = new HoldWatch(lane.service, customer.organizationId);
    this.keyword = `crash ${customer.organizationId}`;
    this.key = one.keyed ? `key of ${customer.organizationId}`.replaceAll(" ", "-") : undefined;
  }

  /** Plays the case until every caller has ended. */
  async run(): Promise<void> {
    const { lane } = this;
    for (const place of lane.places) place.onDeath = (death) => this.#mourn(death);
    await Promise.all([
      ...lane.apis.map((place, number) => place.arm(this.#order(this.case.apis[number]))),
      ...(this.case.plot === "caretaker starts" ? [] : lane.workers.map((place) => place.arm(this.#workerOrder))),
    ]);
    await this.#plots[this.case.plot]();
  }

  readonly #plots: Record<Case["plot"], () => Promise<void>> = {
    search: () => this.#search(),
    cold: () => this.#search(),
    late: () => this.#late(),
    "charged late": () => this.#chargedLate(),
    "hang-up": () => this.#hangUp(),
    "charged hang-up": () => this.#search(),
    repeat: () => this.#repeat(),
    stopping: () => this.#stopping(),
    "no second answer": () => this.#noSecondAnswer(),
    "caretaker starts": () => this.#caretakerStarts(),
  };

  async #search(firstApi: 0 | 1 = 0, onAttempt: () => void = () => undefined): Promise<void> {
    const { keyword, key } = this;
    const { token } = this.customer;
    const gone = this.#gone.signal;
    this.attempts.push(...(await ask(this.lane, { token, keyword, key, firstApi, gone, patienceMs, onAttempt })));
  }

  async #late(): Promise<void> {
    this.lane.onAsked = () => {
      this.lane.onAsked = () => undefined;
      for (const worker of this.lane.workers) worker.signal("SIGSTOP");
    };
    await this.#search(0, () => this.#goOn());
  }

  async #chargedLate(): Promise<void> {
    for (const worker of this.lane.workers) worker.restarts = false;
    await this.#search(0, () => this.#goOn());
  }

  async #hangUp(): Promise<void> {
    this.lane.behaviour = slow;
    this.lane.onAsked = () => this.#gone.abort();
    await this.#search();
  }

  async #repeat(): Promise<void> {
    this.lane.behaviour = slow;
    let second: Promise<void> | undefined;
    this.lane.onAsked = () => {
      second ??= this.#search(0);
    };
    await this.#search(1);
    await second;
  }

  async #stopping(): Promise<void> {
    const isFirstCall = (nth: number) => nth % 2 === 1;
    const isSlow = (nth: number) => nth <= 2 * this.case.workers.length;
    this.lane.behaviour = (nth) => ({ ms: isSlow(nth) ? halfAStopMs : 50, fails: isSlow(nth) && isFirstCall(nth) });
    this.lane.onAsked = () => {
      const nth = this.lane.calls.length;
      if (isSlow(nth) && isFirstCall(nth)) for (const worker of this.lane.workers) worker.signal("SIGTERM");
    };
    await this.#search();
  }

  async #noSecondAnswer(): Promise<void> {
    // The second run's call, and its one more try.
    this.lane.behaviour = (nth) => ({ ms: 50, fails: nth === 2 || nth === 3 });
    await this.#search();
  }

  async #caretakerStarts(): Promise<void> {
    await this.#search();
    await this.lane.service.redis.del(keysOf(this.customer.organizationId).balance);
    for (const worker of this.lane.workers) {
      this.#killed.add(worker.process);
      worker.order = this.#workerOrder;
      worker.signal("SIGKILL");
    }
  }

  /** The workers stand still no longer, and a dead one is replaced. */
  #goOn(): void {
    for (const worker of this.lane.workers) {
      worker.restarts = true;
      worker.signal("SIGCONT");
      worker.start();
    }
  }

  #order(point: Point | undefined): Order {
    return point ? { ...point, organizationId: this.customer.organizationId } : null;
  }

  get #workerOrder(): Order {
    return this.#order(this.case.workers[this.#workerDeaths]);
  }

  #mourn(death: Death): void {
    const { place } = death;
    const wasToldTo = this.case.plot === "stopping" && death.signal !== "SIGKILL" && death.said === "";
    if (wasToldTo || this.#killed.has(place.process)) return;
    const point = place.kind === "api" ? this.case.apis[place.number] : this.case.workers[this.#workerDeaths];
    if (!point || !isAt(death, point)) {
      const last = this.deaths.findLast((other) => other.death.place.kind === place.kind);
      // Both workers were at the step before the second could be told not to die: one death more, which must not matter.
      if (last && isAt(death, last.point)) this.twins.push(death);
      else this.accidents.push(death);
      return;
    }
    this.deaths.push({ death, point });
    if (place.kind === "api") {
      place.order = null;
      return;
    }
    this.#workerDeaths += 1;
    for (const worker of this.lane.workers) void worker.arm(this.#workerOrder);
    if (this.case.plot === "charged late") for (const worker of this.lane.workers) worker.signal("SIGSTOP");
    if (this.case.plot === "charged hang-up") this.#gone.abort();
  }
}

const slow: Behaviour = () => ({ ms: slowMs, fails: false });
