import { Api, answer, carry, go, refuse } from "./api-states.ts";
import { balanceOf, confirm, reverse } from "./postgres.ts";
import { Caller, Clock, Reversed, type Search, type State } from "./state.ts";
import type { Change, Steps } from "./steps.ts";

/** The delivery of an answer: its bytes on the way to the caller, its confirmation, or the reversal of its charge. */

/**
 * The API checks the fence and sends the first byte in one turn of the event loop. A caller that disconnects before gets no byte.
 */
export function offerDelivery(steps: Steps, { index, caller, clock }: Search): void {
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
  if (!isReversible || !mayBreakOff(steps)) return steps.offer("API of %: 200 delivered", index, deliver(steps));
  steps.offer("API of %: 200, writes the answer", index, (_, own) => go(own, Api.send));
}

const deliver =
  (steps: Steps): Change =>
  (_, own) => {
    answer(own, own.carriedBalance === 0 ? Caller.delivered : Caller.deliveredOther);
    const isConfirmed = !steps.isKeyed(own.index) && steps.config.design.confirms;
    go(own, isConfirmed ? Api.confirm : Api.done);
  };

/** Whether anything can happen between the first byte and the last. If not, the two are one step. */
const mayBreakOff = ({ config: { faults } }: Steps) =>
  (["disconnect", "cancel", "apiCrash", "apiPause", "slowReader"] as const).some(
    (fault) => faults[fault] !== undefined,
  );

/** The charge is final when one usable copy of the answer was handed to the caller's socket. */
export function offerSending(steps: Steps, { index, caller }: Search): void {
  const { reversedIsUnsent, firstCopyIsFinal } = steps.config.design;
  if (caller === Caller.disconnected)
    return steps.offer("API of %: the caller disconnected amid the answer", index, (_, own) => go(own, Api.reverse));
  steps.offer("API of %: a whole copy of the answer is in the socket", index, deliver(steps));
  steps.offer(
    "API of %: the answer is not read in time, the connection is destroyed",
    index,
    (_, own) => {
      if (!reversedIsUnsent) answer(own, Caller.delivered);
      answer(own, Caller.disconnected);
      go(own, Api.reverse);
    },
    "slowReader",
  );
  if (firstCopyIsFinal) return;
  steps.offer("API of %: one of two copies is in the socket, then the caller disconnects", index, (_, own) => {
    answer(own, Caller.delivered);
    go(own, Api.reverse);
  });
}

/** Retried for four minutes. Its outcome may be unknown, because a repeat has no effect. */
export function offerConfirmation(steps: Steps, { index }: Search): void {
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

export function offerReversal(steps: Steps, { index, undelivered, caller }: Search): void {
  const why = caller === Caller.disconnected ? Reversed.callerDisconnected : Reversed.yes;
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own, why);
  };
  steps.offer("API of %: reverses the charge in Postgres", index, (next, own) => {
    giveBack(next, own);
    carry(own, Api.reversePush, balanceOf(next));
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
