import { Api } from "./api-states.ts";
import { isPaid, reverse, settle } from "./postgres.ts";
import { currentPair, endOf, Message, send, storePair } from "./redis.ts";
import { Clock, Hold, type Search, type State } from "./state.ts";
import { nobody, type Steps } from "./steps.ts";

/** The caretaker: the sweeper of holds, and the reconciler of charges and of balance copies. */

const Sweep = { none: 0, decided: 1 } as const;

/** The sweeper ends what stands behind deadline and grace: the decision first, its message after. */
export function offerSweeper(steps: Steps, search: Search): void {
  const { config, now } = steps;
  const { place, hold, clock, sweep, sweepBalance, sweepVersion } = search;
  const seesIt = config.design.sweeps && now.shared.quiet === 0 && clock >= Clock.grace;
  if (hold !== Hold.none && sweep === Sweep.none && seesIt)
    steps.take("the sweeper finds the hold of %, Postgres decides", place, (next, own) => {
      settle(config, next, own, "refund");
      if (isPaid(own) && !config.design.sweeperLeavesCharges) reverse(config, next, own);
      own.sweep = Sweep.decided;
      own.sweepBalance = next.shared.balance;
      own.sweepVersion = next.shared.version;
      return isPaid(own) ? "a charge was first" : "a refund";
    });
  if (sweep === Sweep.none) return;
  const kind = endOf(steps.isKeyed(place), search, false);
  send(steps, "the sweeper: settle.lua for %", place, { kind, balance: sweepBalance, version: sweepVersion }, (own) => {
    own.sweep = own.sweepBalance = own.sweepVersion = 0;
  });
}

/**
 * Gives back what stands in `undelivered` for five minutes. By then a living API is through with the search, or behind its
 * fence; only one that is frozen, or cut off, can still have a delivery to confirm. Decision and message are one step, as
 * where a worker gives back.
 */
export function offerReconciler(steps: Steps, { place, undelivered, clock, api }: Search): void {
  if (undelivered === 0 || clock < Clock.fence) return;
  const giveBack = (next: State, own: Search) => {
    if (api === Api.confirm) own.inDoubt = 1;
    reverse(steps.config, next, own);
  };
  const isFrozen = api === Api.confirm;
  const name = isFrozen
    ? "five minutes pass over the frozen API of %, the reconciler gives its charge back"
    : "five minutes pass, the reconciler gives the charge of % back";
  const fault = isFrozen ? "apiPause" : undefined;
  steps.take(
    name,
    place,
    (next, own) => {
      giveBack(next, own);
      storeNow(steps, next);
    },
    fault,
  );
  if (!isFrozen) steps.take(`${name}, the pair [lost]`, place, giveBack, "message");
}

/** A new run of Redis, or a caretaker that has just begun: every organization's pair is stored where it is newer. */
export function offerFirstRound(steps: Steps): void {
  if (steps.now.shared.newRun === 0 || !steps.config.design.reconcilesPairs) return;
  steps.take("the caretaker sees a new run of Redis, stores all pairs", nobody, (next) => {
    storeNow(steps, next);
    next.shared.newRun = 0;
    if (steps.config.design.sweepsEverybodyAtFirst) next.shared.quiet = 0;
  });
}

/**
 * The slow rotation. Offered where nothing else is left to do: what it stores is what any settle.lua would, so that it
 * brings nothing new while messages come, and is only needed where none comes any more.
 */
export function offerRotation(steps: Steps): void {
  const { copy, copyVersion, version } = steps.now.shared;
  if (!steps.config.design.reconcilesPairs || copy === 0 || copyVersion >= version) return;
  steps.take("the rotation finds an older copy, stores the pair", nobody, (next) => storeNow(steps, next));
}

function storeNow({ config }: Steps, next: State): void {
  const { balance, version } = currentPair(next, Message.pair);
  storePair(config, next, balance, version);
}
