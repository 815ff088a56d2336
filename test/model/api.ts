import { Api, carry, go, refuse, tell } from "./api-states.ts";
import { confirm, isPaid, reverse, settle } from "./postgres.ts";
import { endOf, Message, send } from "./redis.ts";
import { Caller, Clock, Decision, Inbox, Job, type Search, type State } from "./state.ts";
import type { Steps } from "./steps.ts";

/** The API from the moment a search is in the queue: the wait, its end, the undo of everything, delivery. */

export function offerApi(steps: Steps, own: Search): void {
  switch (own.api) {
    case Api.wait:
      return offerWait(steps, own);
    case Api.refund:
    case Api.undo:
    case Api.leftRefund:
      return offerRefund(steps, own);
    case Api.refundDrop:
    case Api.undoDrop:
    case Api.leftDrop:
      return offerDrop(steps, own);
    case Api.lateWait:
      return offerLateWait(steps, own);
    case Api.deliver:
      return offerDelivery(steps, own);
    case Api.confirm:
      return offerConfirmation(steps, own);
    case Api.reverse:
      return offerReversal(steps, own);
    case Api.reversePush: {
      const sent = { kind: Message.drop, balance: own.pairBalance, version: own.pairVersion };
      return send(steps, "API of %: settle.lua (reversed)", own.place, sent, (search) => go(search, Api.done));
    }
  }
}

function offerWait(steps: Steps, { place, inbox, caller, clock, job }: Search): void {
  const isKeyed = steps.isKeyed(place);
  if (inbox !== Inbox.none) offerArrival(steps, place, inbox);
  if (caller === Caller.gone && isKeyed)
    steps.take("API of %: the caller is gone, under a key the search runs on", place, (_, own) => go(own, Api.done));
  if (caller === Caller.gone && !isKeyed) {
    steps.take("API of %: the caller is gone, gives the search up", place, (_, own) => go(own, Api.undo));
    // The job is taken out of the queue beside that, where no worker has it yet; that may fail.
    if (job === Job.waiting)
      steps.take("API of %: the caller is gone, gives the search up and removes its job", place, (_, own) => {
        own.job = own.takeOvers = 0;
        go(own, Api.undo);
      });
  }
  if (clock >= Clock.deadline) steps.take("API of %: the wait ran out", place, (_, own) => go(own, Api.refund));
}

/** The first entry for this search counts. A failure that says that a charge stands tells the API to give it back. */
function offerArrival(steps: Steps, place: number, inbox: number): void {
  if (inbox === Inbox.answer)
    return steps.take("API of %: takes the answer from its inbox", place, (_, own) => go(own, Api.deliver));
  steps.take("API of %: takes a failure from its inbox and tells it", place, (_, own) => {
    refuse(own);
    if (inbox === Inbox.failureOfCharge && !steps.isKeyed(place)) go(own, Api.reverse);
  });
}

const dropOf = new Map<number, number>([
  [Api.refund, Api.refundDrop],
  [Api.undo, Api.undoDrop],
  [Api.leftRefund, Api.leftDrop],
]);

/** settleRefund(): Postgres decides, whoever waits for it. */
function offerRefund(steps: Steps, { place, api, decision }: Search): void {
  const decide = (next: State, own: Search) => {
    const isFirst = own.decision === Decision.none;
    settle(steps.config, next, own, "refund");
    return isFirst ? "refunded" : isPaid(own) ? "a charge was first" : "refunded before";
  };
  steps.take("API of %: wants a refund in Postgres", place, (next, own) => {
    const found = decide(next, own);
    carry(own, dropOf.get(own.api) ?? Api.done, next.shared.balance, next.shared.version);
    return found;
  });
  // It is asked again then, and finds what is decided.
  if (decision === Decision.none)
    steps.take("API of %: wants a refund, commits, never hears of it", place, decide, "unknownCommit");
  steps.take("API of %: gives up, Postgres is out of reach", place, (_, own) => refuse(own), "postgresAway");
  if (api === Api.refund)
    steps.take("API of %: 504, the refund takes longer than a second", place, (_, own) => {
      tell(own, Caller.refused);
      go(own, Api.leftRefund);
    });
}

/** The hold goes back; where a charge was first, hold and record are left to whoever charged, and only the pair is new. */
function offerDrop(steps: Steps, search: Search): void {
  const { place, api, decision, pairBalance, pairVersion } = search;
  const isKeyed = steps.isKeyed(place);
  const leaves = isPaid(search) && steps.config.design.apiLeavesCharges;
  const kind = leaves ? Message.pair : endOf(isKeyed, search, false);
  const name = leaves ? "API of %: stores the pair, leaves the hold" : "API of %: settle.lua (refund)";
  send(steps, name, place, { kind, balance: pairBalance, version: pairVersion }, (after) => {
    if (api === Api.refundDrop && isPaid(search)) return go(after, Api.lateWait);
    if (api === Api.undoDrop && decision === Decision.charge && !isKeyed) return go(after, Api.reverse);
    refuse(after);
  });
}

/** The charge was faster than the refund: its answer has a moment to arrive. */
function offerLateWait(steps: Steps, { place, inbox }: Search): void {
  if (inbox !== Inbox.none) offerArrival(steps, place, inbox);
  steps.take("API of %: 504, no answer arrived", place, (_, own) => {
    refuse(own);
    if (!steps.isKeyed(place) || !steps.config.design.keyedChargesStand) go(own, Api.reverse);
  });
}

/**
 * Fence and first byte are one turn of the event loop, so that nothing comes between them. The bytes are the socket's in
 * the next moment; a caller who hangs up before has not got them.
 */
function offerDelivery(steps: Steps, { place, caller, clock }: Search): void {
  const isReversible = !steps.isKeyed(place);
  if (caller === Caller.gone)
    return steps.take("API of %: nobody takes the answer", place, (_, own) =>
      go(own, isReversible ? Api.reverse : Api.done),
    );
  if (clock >= Clock.fence && steps.config.design.fences)
    return steps.take("API of %: 504, too late for a 200", place, (_, own) => {
      refuse(own);
      if (isReversible) go(own, Api.reverse);
    });
  steps.take("API of %: 200 delivered", place, (_, own) => {
    tell(own, Caller.delivered);
    go(own, isReversible && steps.config.design.confirms ? Api.confirm : Api.done);
  });
}

/** Asked again until it is done, for four minutes; its outcome may be unknown, since a second time has no effect. */
function offerConfirmation(steps: Steps, { place }: Search): void {
  steps.take("API of %: confirms the delivery in Postgres", place, (_, own) => {
    confirm(own);
    go(own, Api.done);
  });
  const away = "API of %: gives its confirmation up, Postgres is out of reach for minutes";
  steps.take(
    away,
    place,
    (_, own) => {
      own.inDoubt = 1;
      go(own, Api.done);
    },
    "postgresAway",
  );
}

function offerReversal(steps: Steps, { place, undelivered }: Search): void {
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own);
  };
  steps.take("API of %: gives the charge back in Postgres", place, (next, own) => {
    giveBack(next, own);
    carry(own, Api.reversePush, next.shared.balance, next.shared.version);
  });
  if (undelivered === 1)
    steps.take("API of %: gives the charge back, commits, never hears of it", place, giveBack, "unknownCommit");
  steps.take(
    "API of %: leaves the charge, Postgres is out of reach",
    place,
    (_, own) => go(own, Api.done),
    "postgresAway",
  );
}
