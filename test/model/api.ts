import { Api, answer, carry, go, refuse } from "./api-states.ts";
import { confirm, isPaid, reverse, settle } from "./postgres.ts";
import { endOf, Message, send } from "./redis.ts";
import { Caller, Clock, Decision, Inbox, Job, type Search, type State } from "./state.ts";
import type { Steps } from "./steps.ts";

/** The API from the moment a search is in the queue: the wait and its end, the undo of every step, delivery. */

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
      const sent = { kind: Message.drop, balance: own.carriedBalance, version: own.carriedVersion };
      return send(steps, "API of %: settle.lua (reversed)", own.index, sent, (search) => go(search, Api.done));
    }
  }
}

function offerWait(steps: Steps, { index, inbox, caller, clock, job }: Search): void {
  const isKeyed = steps.isKeyed(index);
  if (inbox !== Inbox.none) offerArrival(steps, index, inbox);
  if (caller === Caller.disconnected && isKeyed)
    steps.offer("API of %: the caller disconnected, under a key the search runs on", index, (_, own) =>
      go(own, Api.done),
    );
  if (caller === Caller.disconnected && !isKeyed) {
    steps.offer("API of %: the caller disconnected, gives the search up", index, (_, own) => go(own, Api.undo));
    // It also removes the job from the queue, where no worker has taken it yet; that may fail.
    if (job === Job.waiting)
      steps.offer("API of %: the caller disconnected, gives the search up and removes its job", index, (_, own) => {
        own.job = own.takeOvers = 0;
        go(own, Api.undo);
      });
  }
  if (clock >= Clock.deadline) steps.offer("API of %: the wait timed out", index, (_, own) => go(own, Api.refund));
}

/** The first entry for this search counts. A failure that says that a charge stands makes the API give it back. */
function offerArrival(steps: Steps, index: number, inbox: number): void {
  if (inbox === Inbox.answer)
    return steps.offer("API of %: reads the answer from its inbox", index, (_, own) => go(own, Api.deliver));
  steps.offer("API of %: reads a failure from its inbox and answers with it", index, (_, own) => {
    refuse(own);
    if (inbox === Inbox.failureOfCharge && !steps.isKeyed(index)) go(own, Api.reverse);
  });
}

const dropOf = new Map<number, number>([
  [Api.refund, Api.refundDrop],
  [Api.undo, Api.undoDrop],
  [Api.leftRefund, Api.leftDrop],
]);

/** settleRefund(): Postgres decides, whether or not the caller still waits. */
function offerRefund(steps: Steps, { index, api, decision }: Search): void {
  const decide = (next: State, own: Search) => {
    const isFirst = own.decision === Decision.none;
    settle(steps.config, next, own, "refund");
    return isFirst ? "refunded" : isPaid(own) ? "a charge was first" : "refunded before";
  };
  steps.offer("API of %: wants a refund in Postgres", index, (next, own) => {
    const found = decide(next, own);
    carry(own, dropOf.get(own.api) ?? Api.done, next.shared.balance, next.shared.version);
    return found;
  });
  // The API retries then, and finds what was decided.
  if (decision === Decision.none)
    steps.offer("API of %: wants a refund, commits, the reply is lost", index, decide, "unknownCommit");
  steps.offer("API of %: gives up, Postgres is unreachable", index, (_, own) => refuse(own), "postgresAway");
  if (api === Api.refund)
    steps.offer("API of %: 504, the refund takes longer than a second", index, (_, own) => {
      answer(own, Caller.refused);
      go(own, Api.leftRefund);
    });
}

/** The hold is dropped. Where a charge was first, hold and record are left to the worker that charged. */
function offerDrop(steps: Steps, search: Search): void {
  const { index, api, decision, carriedBalance, carriedVersion } = search;
  const isKeyed = steps.isKeyed(index);
  const leaves = isPaid(search) && steps.config.design.apiLeavesCharges;
  const kind = leaves ? Message.balance : endOf(isKeyed, search, false);
  const name = leaves ? "API of %: stores the balance, leaves the hold" : "API of %: settle.lua (refund)";
  send(steps, name, index, { kind, balance: carriedBalance, version: carriedVersion }, (after) => {
    if (api === Api.refundDrop && isPaid(search)) return go(after, Api.lateWait);
    if (api === Api.undoDrop && decision === Decision.charge && !isKeyed) return go(after, Api.reverse);
    refuse(after);
  });
}

/** The charge was faster than the refund: the API waits a moment for its answer. */
function offerLateWait(steps: Steps, { index, inbox }: Search): void {
  if (inbox !== Inbox.none) offerArrival(steps, index, inbox);
  steps.offer("API of %: 504, no answer arrived", index, (_, own) => {
    refuse(own);
    if (!steps.isKeyed(index) || !steps.config.design.keyedChargesStand) go(own, Api.reverse);
  });
}

/**
 * The check of the fence and the first byte are in one turn of the event loop, so nothing comes between them. A caller who
 * hangs up before has none of the bytes.
 */
function offerDelivery(steps: Steps, { index, caller, clock }: Search): void {
  const isReversible = !steps.isKeyed(index);
  if (caller === Caller.disconnected)
    return steps.offer("API of %: the caller disconnected before the answer", index, (_, own) =>
      go(own, isReversible ? Api.reverse : Api.done),
    );
  if (clock >= Clock.fence && steps.config.design.fences)
    return steps.offer("API of %: 504, too late for a 200", index, (_, own) => {
      refuse(own);
      if (isReversible) go(own, Api.reverse);
    });
  steps.offer("API of %: 200 delivered", index, (_, own) => {
    answer(own, Caller.delivered);
    go(own, isReversible && steps.config.design.confirms ? Api.confirm : Api.done);
  });
}

/** Retried until it succeeds, for four minutes. Its outcome may be unknown, because a second time has no effect. */
function offerConfirmation(steps: Steps, { index }: Search): void {
  steps.offer("API of %: confirms the delivery in Postgres", index, (_, own) => {
    confirm(own);
    go(own, Api.done);
  });
  const away = "API of %: gives up its confirmation, Postgres is unreachable for minutes";
  steps.offer(
    away,
    index,
    (_, own) => {
      own.inDoubt = 1;
      go(own, Api.done);
    },
    "postgresAway",
  );
}

function offerReversal(steps: Steps, { index, undelivered }: Search): void {
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own);
  };
  steps.offer("API of %: reverses the charge in Postgres", index, (next, own) => {
    giveBack(next, own);
    carry(own, Api.reversePush, next.shared.balance, next.shared.version);
  });
  if (undelivered === 1)
    steps.offer("API of %: reverses the charge, commits, the reply is lost", index, giveBack, "unknownCommit");
  steps.offer(
    "API of %: leaves the charge, Postgres is unreachable",
    index,
    (_, own) => go(own, Api.done),
    "postgresAway",
  );
}
