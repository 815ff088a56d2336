import { offerConfirmation, offerDelivery, offerReversal, offerSending } from "./api-delivery.ts";
import { Api, answer, carriedBy, carry, go, refuse } from "./api-states.ts";
import { creditOf, isPaid, settle } from "./postgres.ts";
import { endOf, Message, putLate, send, tell } from "./redis.ts";
import { Caller, Clock, Decision, Inbox, isAsking, Job, Reversed, type Search, type State } from "./state.ts";
import type { Change, Steps } from "./steps.ts";

/** The API once a search is in the queue: the wait and its end, and the undo of every step. */

export function offerApi(steps: Steps, own: Search): void {
  switch (own.api) {
    case Api.wait:
      return offerWait(steps, own);
    case Api.refund:
    case Api.undo:
    case Api.leftRefund:
    case Api.disconnect:
      return offerRefund(steps, own);
    case Api.refundDrop:
    case Api.undoDrop:
    case Api.leftDrop:
    case Api.disconnectEnd:
      return offerDrop(steps, own);
    case Api.tell:
      return offerTelling(steps, own.index);
    case Api.lateWait:
      return offerLateWait(steps, own);
    case Api.deliver:
      return offerDelivery(steps, own);
    case Api.send:
      return offerSending(steps, own);
    case Api.confirm:
      return offerConfirmation(steps, own);
    case Api.reverse:
      return offerReversal(steps, own);
    case Api.reversePush: {
      const kind = own.reversed === Reversed.callerDisconnected ? Message.reversed : Message.drop;
      const sent = { kind, ...carriedBy(own) };
      return send(steps, "API of %: settle.lua (reversed)", own.index, sent, (search) => go(search, Api.done));
    }
  }
}

function offerWait(steps: Steps, { index, inbox, caller, clock }: Search): void {
  if (inbox !== Inbox.none) offerArrival(steps, index, inbox);
  if (caller === Caller.disconnected && steps.isKeyed(index))
    steps.offer("API of %: the caller disconnected, under a key the search runs on", index, (_, own) =>
      go(own, Api.done),
    );
  if (caller === Caller.disconnected && !steps.isKeyed(index)) offerGivingUp(steps, index);
  if (clock >= Clock.deadline) steps.offer("API of %: the wait timed out", index, (_, own) => go(own, Api.refund));
}

/** The caller of a search disconnected. A job that still waited costs nothing; otherwise it costs its calls. */
function offerGivingUp(steps: Steps, index: number): void {
  steps.offer("API of %: the caller disconnected, removes the job", index, (_, own) => {
    const wasWaiting = own.job === Job.waiting;
    if (wasWaiting) own.job = own.takeOvers = 0;
    go(own, wasWaiting ? Api.undo : Api.tell);
    return wasWaiting ? "it waited" : "a worker has it";
  });
  const lost = "API of %: the caller disconnected, the removal of the job";
  steps.offer(`${lost} [lost]`, index, (_, own) => go(own, Api.tell), "message");
  const unanswered: Change = (_, own) => {
    if (own.job === Job.waiting) own.job = own.takeOvers = 0;
    go(own, Api.tell);
  };
  steps.offer(`${lost}, its reply is lost`, index, unanswered, "message");
}

/** The first entry for this search counts. If a failure reports that a charge stands, the API reverses it. */
function offerArrival(steps: Steps, index: number, inbox: number): void {
  if (inbox === Inbox.answer || inbox === Inbox.otherAnswer)
    return steps.offer("API of %: reads the answer from its inbox", index, (_, own) =>
      carry(own, Api.deliver, { balance: inbox === Inbox.otherAnswer ? 1 : 0, version: 0, spent: 0 }),
    );
  steps.offer("API of %: reads a failure from its inbox and answers with it", index, (_, own) => {
    refuse(own);
    if (inbox === Inbox.failureOfCharge && !steps.isKeyed(index)) go(own, Api.reverse);
  });
}

const dropOf = new Map<number, number>([
  [Api.refund, Api.refundDrop],
  [Api.undo, Api.undoDrop],
  [Api.leftRefund, Api.leftDrop],
  [Api.disconnect, Api.disconnectEnd],
]);

/** settleRefund(): Postgres decides, even if the caller no longer waits. */
function offerRefund(steps: Steps, { index, api, decision }: Search): void {
  const decide = (next: State, own: Search) => {
    const isFirst = own.decision === Decision.none;
    settle(steps.config, next, own, api === Api.disconnect ? "disconnect" : "refund");
    return isFirst ? "refunded" : isPaid(own) ? "a charge was first" : "refunded before";
  };
  steps.offer("API of %: wants a refund in Postgres", index, (next, own) => {
    const found = decide(next, own);
    carry(own, dropOf.get(own.api) ?? Api.done, creditOf(steps.config, next));
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

/** Drops the hold. If a charge was first, hold and record are left to the worker that charged. */
function offerDrop(steps: Steps, search: Search): void {
  const { index, api, decision } = search;
  const isKeyed = steps.isKeyed(index);
  const leaves = isPaid(search);
  const callerDisconnected = api === Api.disconnectEnd && decision === Decision.callerDisconnected;
  const kind = leaves ? Message.balance : callerDisconnected ? Message.slot : endOf(isKeyed, search, false);
  const name = leaves ? "API of %: stores the balance, leaves the hold" : `API of %: settle.lua (${endNames[kind]})`;
  send(steps, name, index, { kind, ...carriedBy(search) }, (after) => {
    if (api === Api.refundDrop && isPaid(search)) return go(after, Api.lateWait);
    const isUndone = api === Api.undoDrop || api === Api.disconnectEnd;
    if (isUndone && decision === Decision.charge && !isKeyed) return go(after, Api.reverse);
    refuse(after);
  });
}

const endNames: Record<number, string> = {
  [Message.drop]: "refund",
  [Message.failure]: "refund, failure",
  [Message.free]: "the key is free",
  [Message.slot]: "the hold becomes a concurrency slot",
};

/**
 * Published on a channel: it reaches the workers that listen now, and is not kept for later ones. The refund does not wait for
 * it.
 */
function offerTelling(steps: Steps, index: number): void {
  const isHeard = steps.now.search(index).runs.some(isAsking);
  const name = "API of %: tells the workers that the caller has disconnected";
  steps.offer(name, index, (_, own) => {
    tell(own);
    go(own, Api.disconnect);
    return isHeard ? "its worker hears it" : "no worker runs it";
  });
  if (!isHeard) return;
  steps.offer(`${name} [lost]`, index, (_, own) => go(own, Api.disconnect), "message");
  const late: Change = (next, own) => {
    putLate(next, own, { kind: Message.told, balance: 0, version: 0, spent: 0 });
    go(own, Api.disconnect);
  };
  if (steps.now.shared.lateTo === 0) steps.offer(`${name} [arrives late]`, index, late, "message");
}

/** The charge was faster than the refund: the API waits a moment for its answer. */
function offerLateWait(steps: Steps, { index, inbox }: Search): void {
  if (inbox !== Inbox.none) offerArrival(steps, index, inbox);
  steps.offer("API of %: 504, no answer arrived", index, (_, own) => {
    refuse(own);
    if (!steps.isKeyed(index) || !steps.config.design.keyedChargesStand) go(own, Api.reverse);
  });
}
