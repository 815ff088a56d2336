import { Decision, Reversed, type Search, type State } from "./state.ts";
import type { ModelConfig } from "./steps.ts";

/**
 * Postgres: the functions of the ledger, each one transaction. Only what moves money raises the version. settle() locks the
 * organization before it reads, so requests are decided one after the other, and it is modelled as one atomic step. Several
 * searches in one batch equal several calls in that order; the running sum and the versions of a batch are tested against a
 * real Postgres.
 */

const isKeyed = (config: ModelConfig, search: Search) => config.keyed[search.index] ?? false;

/** What settle() is asked for. `disconnect` is a refund because the caller has disconnected. */
export type Wanted = "charge" | "refund" | "disconnect";

/** settle(): decides the search unless it is decided, and stores the decision in its fields. */
export function settle(config: ModelConfig, state: State, search: Search, wanted: Wanted): void {
  const { shared } = state;
  if (search.decision !== Decision.none) {
    if (config.design.decidesOnce || wanted !== "charge" || shared.balance < 1) return;
    shared.decidedTwice = 1;
    shared.balance -= 1;
    shared.version += 1;
    return;
  }
  if (wanted !== "charge") {
    search.decision = wanted === "disconnect" ? Decision.callerDisconnected : Decision.refund;
  } else if (isKeyed(config, search) && shared.paidBy !== 0 && config.design.keyPaysOnce) {
    // Before the guard, because a paid answer is owed whatever the balance.
    search.decision = Decision.alreadyPaid;
  } else if (shared.balance < 1) {
    search.decision = Decision.outOfCredits;
  } else if (config.limit !== undefined && spentIn(config, state) >= config.limit && config.design.limitsCharges) {
    search.decision = Decision.overLimit;
  } else {
    search.decision = Decision.charge;
    shared.balance -= 1;
    shared.version += 1;
    if (isKeyed(config, search)) {
      shared.paidBy = search.index + 1;
      if (config.design.storesWithTheCharge) shared.stored = 1;
    }
    if (!isKeyed(config, search) || !config.design.keyedChargesStand) search.undelivered = 1;
  }
}

/** A balance of Postgres that a message or a process carries, and the spending by then (+ 1; 0 if unknown). */
export interface Credit {
  balance: number;
  version: number;
  spent: number;
}

/** The credit that settle() returns, and that a search reads if Redis has none. */
export const creditOf = (config: ModelConfig, state: State): Credit => ({
  balance: state.shared.balance,
  version: state.shared.version,
  spent: config.limit === undefined ? 0 : spentIn(config, state) + 1,
});

/** The credit that reversals, grants and the reconciler return, without spending. */
export const balanceOf = ({ shared }: State): Credit => ({
  balance: shared.balance,
  version: shared.version,
  spent: 0,
});

/** What counts against the limit: how far the balance fell, without added credit. Only in a design bug would it be below 0. */
export const spentIn = ({ balance, design }: ModelConfig, { shared }: State): number =>
  Math.max(0, (design.grantsAreNoRoom ? shared.granted : balance) - shared.balance);

/** Whether the search has an answer to deliver. */
export const isPaid = ({ decision }: Search) => decision === Decision.charge || decision === Decision.alreadyPaid;

/** reverse_charges(): the row in `undelivered` is the right to reverse. Deleting it makes the reversal happen once. */
export function reverse(config: ModelConfig, { shared }: State, search: Search, why: number = Reversed.yes): void {
  const mayReverse = config.design.reversalTakesTheRow ? search.undelivered === 1 : search.decision === Decision.charge;
  if (!mayReverse || search.reversed !== Reversed.no) return;
  search.undelivered = 0;
  search.reversed = why;
  shared.balance += 1;
  shared.version += 1;
}

/** confirmDelivered(): from now on the charge is final. */
export function confirm(search: Search): void {
  search.undelivered = 0;
}

/** change_credit(): one price more. */
export function grant({ shared }: State): void {
  shared.granted += 1;
  shared.balance += 1;
  shared.version += 1;
}
