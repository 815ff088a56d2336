import type { Design } from "./design.ts";
import type { Fault, Search, State } from "./state.ts";

/** The bounds of a model: which searches are sent, which of them under the key, and how often each fault may happen. */
export interface ModelConfig {
  /** For each search whether it is sent with the Idempotency-Key; all that are share one key. */
  keyed: readonly boolean[];
  /** In prices; a price is 1. */
  balance: number;
  /** The organization's limit of a day, in prices; absent without one. The day does not end. */
  limit?: number;
  /** Redis has a copy of the balance at the start. */
  warm: boolean;
  /** How often a job is taken over from a dead or frozen worker before it fails. */
  takeOversMax: number;
  /** How many pages a run asks the provider for at most. */
  pages: number;
  /** Time passes only where no other step is left. Without it a deadline may pass before any step. */
  isPunctual?: boolean;
  faults: Partial<Record<Fault, number>>;
  design: Design;
}

/** A step that can follow a state. One object is reused for all of them. */
export interface OfferedStep {
  /** What happens; `%` stands for the search. */
  name: string;
  /** Its outcome, where that depends on the state. */
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
 * Offers the steps that can follow one state. Each is one atomic change of a copy: one message that arrives, one transaction,
 * one decision of a process.
 */
export class Steps {
  readonly config: ModelConfig;
  /** The current state; never changed. */
  readonly now: State;
  /** Offered steps that are no faults. Where there are none, all has come to rest. */
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
