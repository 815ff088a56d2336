import type { Design } from "./design.ts";
import type { Fault, Search, State } from "./state.ts";

/** The bounds of a model. */
export interface ModelConfig {
  /** Whether each search is sent with the Idempotency-Key, which all share. */
  keyed: readonly boolean[];
  /** In prices; a price is 1. */
  balance: number;
  /** The organization's daily limit, in prices. The day does not end. */
  limit?: number;
  /** Whether Redis has a copy of the balance at the start. */
  warm: boolean;
  /** How often a job is taken over from a dead or frozen worker before it fails. */
  takeOversMax: number;
  /** How many pages a run requests from the provider at most. */
  pages: number;
  /** Whether time passes only when no other step is left. Otherwise a deadline may pass before any step. */
  isPunctual?: boolean;
  faults: Partial<Record<Fault, number>>;
  design: Design;
}

/** A step that can follow a state. One object is reused for all of them. */
export interface OfferedStep {
  /** What happens; `%` stands for the search. */
  name: string;
  /** Its outcome, if that depends on the state. */
  found: string;
  index: number;
  isFault: boolean;
  /** The rule that the step itself breaks. */
  broken: string;
}

/** What a step does to the copy of the state. It may return its outcome. */
export type Change = (next: State, own: Search) => string | void;

export const noSearch = -1;

/**
 * Offers the steps that can follow one state. Each is one atomic change: a message that arrives, a transaction, or a decision of
 * a process.
 */
export class Steps {
  readonly config: ModelConfig;
  /** The current state; never changed. */
  readonly now: State;
  /** The number of offered steps that are no faults. At rest there are none. */
  progress = 0;
  readonly #next: State;
  readonly #report: (step: OfferedStep) => void;
  readonly #offered: OfferedStep = { name: "", found: "", index: noSearch, isFault: false, broken: "" };

  /** @param report receives each step that can follow the state. */
  constructor(config: ModelConfig, now: State, next: State, report: (step: OfferedStep) => void) {
    this.config = config;
    this.now = now;
    this.#next = next;
    this.#report = report;
  }

  /** Offers a step. A fault is offered while its budget lasts, and uses it up. */
  offer(name: string, index: number, change: Change, fault?: Fault): void {
    if (fault && this.now.left[fault] === 0) return;
    this.#next.words.set(this.now.words);
    if (fault) this.#next.left[fault] -= 1;
    else this.progress += 1;
    const offered = this.#offered;
    offered.broken = "";
    offered.found = change(this.#next, this.#next.search(Math.max(index, 0))) ?? "";
    offered.name = name;
    offered.index = index;
    offered.isFault = fault !== undefined;
    this.#report(offered);
  }

  /** Reports, within a change, that the step itself breaks a rule. */
  breaks(rule: string): void {
    this.#offered.broken = rule;
  }

  isKeyed(index: number): boolean {
    return this.config.keyed[index] ?? false;
  }
}
