import { Api } from "./api-states.ts";
import { creditOf, isPaid, reverse, settle } from "./postgres.ts";
import { endOf, send, storeNow } from "./redis.ts";
import { Clock, Hold, type Search, type State } from "./state.ts";
import { noSearch, type Steps } from "./steps.ts";

/** The maintenance: the sweeper of holds, and the reconciler of charges and of copies of balances. */

const Sweep = { none: 0, decided: 1 } as const;

/** The sweeper ends holds after deadline and grace: first the decision, then the message. */
export function offerSweeper(steps: Steps, search: Search): void {
  const { config } = steps;
  const { index, hold, clock, sweep, sweepBalance: balance, sweepVersion: version, sweepSpent: spent } = search;
  const seesIt = config.design.sweeps && clock >= Clock.grace;
  if (hold !== Hold.none && sweep === Sweep.none && seesIt)
    steps.offer("the sweeper finds the hold of %, Postgres decides", index, (next, own) => {
      settle(config, next, own, "refund");
      if (isPaid(own) && !config.design.sweeperLeavesCharges) reverse(config, next, own);
      own.sweep = Sweep.decided;
      ({ balance: own.sweepBalance, version: own.sweepVersion, spent: own.sweepSpent } = creditOf(config, next));
      return isPaid(own) ? "a charge was first" : "a refund";
    });
  if (sweep === Sweep.none) return;
  const kind = endOf(steps.isKeyed(index), search, false);
  send(steps, "the sweeper: settle.lua for %", index, { kind, balance, version, spent }, (own) => {
    own.sweep = own.sweepBalance = own.sweepVersion = own.sweepSpent = 0;
  });
}

/**
 * Reverses what has been in `undelivered` for five minutes. By then a running API is done with the search, or its fence has
 * passed. Only an API that is frozen or cut off can still have a delivery to confirm. Decision and message are one step, as in a
 * worker's reversal.
 */
export function offerReconciler(steps: Steps, { index, undelivered, clock, api }: Search): void {
  if (undelivered === 0 || clock < Clock.fence) return;
  const isFrozen = api === Api.send || api === Api.confirm;
  const giveBack = (next: State, own: Search) => {
    if (isFrozen) own.inDoubt = 1;
    reverse(steps.config, next, own);
  };
  const name = isFrozen
    ? "five minutes pass, the API of % is frozen, the reconciler reverses its charge"
    : "five minutes pass, the reconciler reverses the charge of %";
  const fault = isFrozen ? "apiPause" : undefined;
  steps.offer(
    name,
    index,
    (next, own) => {
      giveBack(next, own);
      storeNow(steps.config, next);
    },
    fault,
  );
  if (!isFrozen) steps.offer(`${name}, the balance [lost]`, index, giveBack, "message");
}

/** After a restart of Redis, and when a leader starts, every balance is stored if it is newer. */
export function offerFirstRound(steps: Steps): void {
  if (steps.now.shared.newRun === 0 || !steps.config.design.reconcilesBalances) return;
  steps.offer("the maintenance notices a restart of Redis, stores all balances", noSearch, (next) => {
    storeNow(steps.config, next);
    next.shared.newRun = 0;
  });
}

/**
 * The slow rotation of the reconciler. It is offered when no other step is left: while messages arrive it adds nothing, because
 * any settle.lua stores the same balance.
 */
export function offerRotation(steps: Steps): void {
  const { copy, copyVersion, version } = steps.now.shared;
  if (!steps.config.design.reconcilesBalances || copy === 0 || copyVersion >= version) return;
  steps.offer("the rotation finds an older copy, stores the balance", noSearch, (next) => storeNow(steps.config, next));
}
