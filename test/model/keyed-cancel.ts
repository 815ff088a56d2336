import { creditOf, isPaid, settle } from "./postgres.ts";
import { Message, putLate, send, tell } from "./redis.ts";
import { Decision, Job, KeyRecord, type Search, type State } from "./state.ts";
import type { Change, Steps } from "./steps.ts";

/** A person who cancels the search under a key. The API that gets the request need not be that of the search. */

/** `refund` and `refundDrop` follow the removal of a job that waited; otherwise a worker may have it. */
const Cancel = { none: 0, remove: 1, tell: 2, leave: 3, leaveSlot: 4, refund: 5, refundDrop: 6 } as const;

export function offerKeyedCancel(steps: Steps, search: Search): void {
  const { index, cancel } = search;
  const { record, recordOwner } = steps.now.shared;
  if (cancel === Cancel.none) {
    if (record === KeyRecord.running && recordOwner === index + 1)
      steps.offer("the search of % is to be cancelled, its key names it", index, goTo(Cancel.remove), "keyedCancel");
    return;
  }
  steps.offer("the API that cancels % is killed", index, goTo(Cancel.none), "apiCrash");
  if (cancel === Cancel.remove) offerRemoval(steps, index);
  else if (cancel === Cancel.tell) offerTelling(steps, index);
  else if (cancel === Cancel.leave || cancel === Cancel.refund) offerDecision(steps, search);
  else offerEnd(steps, search);
}

const goTo =
  (cancel: number): Change =>
  (_, own) => {
    own.cancel = cancel;
    own.cancelBalance = own.cancelVersion = own.cancelSpent = 0;
  };

function offerRemoval(steps: Steps, index: number): void {
  const remove = (own: Search) => {
    const wasWaiting = own.job === Job.waiting;
    if (wasWaiting) own.job = own.takeOvers = 0;
    return wasWaiting;
  };
  steps.offer("to cancel %, its job is removed", index, (_, own) => {
    own.cancel = remove(own) ? Cancel.refund : Cancel.tell;
    return own.cancel === Cancel.refund ? "it waited" : "a worker may have it";
  });
  const unanswered: Change = (_, own) => {
    remove(own);
    own.cancel = Cancel.tell;
  };
  steps.offer("to cancel %, its job is removed, the reply is lost", index, unanswered, "message");
}

/** Not awaited: the decision goes on, whether or not a worker hears it. */
function offerTelling(steps: Steps, index: number): void {
  const name = "to cancel %, the workers learn of it";
  steps.offer(name, index, (_, own) => {
    tell(own);
    own.cancel = Cancel.leave;
  });
  steps.offer(`${name} [lost]`, index, goTo(Cancel.leave), "message");
  const late: Change = (next, own) => {
    putLate(next, own, { kind: Message.told, balance: 0, version: 0, spent: 0 });
    own.cancel = Cancel.leave;
  };
  if (steps.now.shared.lateTo === 0) steps.offer(`${name} [arrives late]`, index, late, "message");
}

function offerDecision(steps: Steps, { index, cancel, decision }: Search): void {
  const decide = (next: State, own: Search) =>
    settle(steps.config, next, own, cancel === Cancel.leave ? "disconnect" : "refund");
  steps.offer("to cancel %, Postgres decides", index, (next, own) => {
    decide(next, own);
    const { balance, version, spent } = creditOf(steps.config, next);
    own.cancel = cancel + 1;
    own.cancelBalance = balance;
    own.cancelVersion = version;
    own.cancelSpent = spent;
    return isPaid(own) ? "a charge was first" : "it is cancelled";
  });
  if (decision === Decision.none)
    steps.offer("to cancel %, Postgres decides, the reply is lost", index, decide, "unknownCommit");
  steps.offer("the cancellation of % fails, Postgres is unreachable", index, goTo(Cancel.none), "postgresAway");
}

function offerEnd(steps: Steps, search: Search): void {
  const { index, cancel, decision, cancelBalance: balance, cancelVersion: version, cancelSpent: spent } = search;
  const isLeft = cancel === Cancel.leaveSlot && decision === Decision.callerDisconnected;
  const kind = isPaid(search) ? Message.balance : isLeft ? Message.slot : Message.failure;
  send(steps, "to cancel %, settle.lua", index, { kind, balance, version, spent }, (own, next) =>
    goTo(Cancel.none)(next, own),
  );
}
