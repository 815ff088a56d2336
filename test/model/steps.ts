import type { Design } from "./design.ts";
import type { Fault, Search, State } from "./state.ts";

/** What a model is made of: how many searches, which of them under the key, what may go wrong, and how often. */
export interface ModelConfig {
  /** For each search whether it is sent with the Idempotency-Key; all that are share one key. */
  keyed: readonly boolean[];
  /** In prices; a price is 1. */
  balance: number;
  /** Redis has a copy of the balance at the start. */
  warm: boolean;
  /** How often a job is taken over from a dead or frozen worker before it fails. */
  takeOversMax: number;
  faults: Partial<Record<Fault, number>>;
  design: Design;
}

/** A step that was offered. One object is used for all of them. */
export interface Taken {
  /** What happens; `%` stands for the search. */
  name: string;
  /** How it came out, where that depends on what was found. */
  found: string;
  place: number;
  isFault: boolean;
  /** The rule that the step itself breaks. */
  broken: string;
}

/** What a step does to the copy; it may say how it came out. */
export type Change = (next: State, own: Search) => string | void;

/** Who takes note of each step that can follow the state in hand. */
export interface Taker {
  taken(step: Taken): void;
}

export const nobody = -1;

/**
 * Offers the steps that can follow one state. Each is a change made to a copy of it, in one atomic move: one message that
 * arrives, one transaction, one decision of a process.
 */
export class Steps {
  readonly config: ModelConfig;
  /** The state in hand; never changed. */
  readonly now: State;
  /** Steps offered for it that are no faults: where there are none, all has come to rest. */
  progress = 0;
  readonly #next: State;
  readonly #taker: Taker;
  readonly #taken: Taken = { name: "", found: "", place: nobody, isFault: false, broken: "" };

  constructor(config: ModelConfig, now: State, next: State, taker: Taker) {
    this.config = config;
    this.now = now;
    this.#next = next;
    this.#taker = taker;
  }

  /** Offers a step. A fault is offered while its budget lasts, and uses it up. */
  take(name: string, place: number, change: Change, fault?: Fault): void {
    if (fault && this.now.left[fault] === 0) return;
    this.#next.words.set(this.now.words);
    if (fault) this.#next.left[fault] -= 1;
    else this.progress += 1;
    const taken = this.#taken;
    taken.broken = "";
    taken.found = change(this.#next, this.#next.search(Math.max(place, 0))) ?? "";
    taken.name = name;
    taken.place = place;
    taken.isFault = fault !== undefined;
    this.#taker.taken(taken);
  }

  /** Says, within a change, that the step itself breaks a rule. */
  breaks(rule: string): void {
    this.#taken.broken = rule;
  }

  isKeyed(place: number): boolean {
    return this.config.keyed[place] ?? false;
  }
}
