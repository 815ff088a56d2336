import { creditOf, isPaid, reverse, settle, type Wanted } from "./postgres.ts";
import { append, endOf, Message, send, storeNow } from "./redis.ts";
import { At, Decision, Inbox, Reversed, type Run, runOf, type Search, type State } from "./state.ts";
import type { Steps } from "./steps.ts";

/** The end of a run: the decision in Postgres, the messages to Redis, the reply. */

/** What a run reports: its answer; a failure; a failure although its search is charged; another answer than its key has. */
const Outcome = { none: 0, answer: 1, failure: 2, failureOfCharge: 3, otherAnswer: 4 } as const;

const isAnswer = (outcome: number) => outcome === Outcome.answer || outcome === Outcome.otherAnswer;

export function decideRun(steps: Steps, next: State, own: Search, slot: number, wanted: Wanted): string {
  const run = runOf(own, slot);
  const isFirst = own.decision === Decision.none;
  settle(steps.config, next, own, wanted);
  run.outcome = outcomeOf(steps, own, wanted, isFirst);
  run.isTold = 0;
  run.at = At.settle;
  const { balance, version, spent } = creditOf(steps.config, next);
  run.carriedBalance = balance;
  run.carriedVersion = version;
  run.carriedSpent = spent;
  return `${isFirst ? "" : "before: "}${decisionNames[own.decision]}${own.reversed ? ", reversed" : ""}`;
}

const decisionNames = [
  "",
  "charge",
  "refund",
  "already paid",
  "out of credits",
  "its caller has disconnected",
  "over the limit",
];

/** Under a key the answer is the one in Postgres, whichever run it came from. */
function outcomeOf(steps: Steps, own: Search, wanted: Wanted, isFirst: boolean): number {
  if (!isPaid(own)) return Outcome.failure;
  if (wanted !== "charge" || own.reversed !== Reversed.no) return Outcome.failureOfCharge;
  if (steps.config.design.answersFromPostgres) return Outcome.answer;
  const isOwn = !steps.isKeyed(own.index) || (isFirst && own.decision === Decision.charge);
  return isOwn ? Outcome.answer : Outcome.otherAnswer;
}

/** The commit's outcome is unknown, so it is retried, and finds what was decided. */
export function offerUnknownCharge(steps: Steps, { index, decision }: Search, slot: number): void {
  if (decision !== Decision.none) return;
  steps.offer(
    "a run of % charges, commits, the reply is lost",
    index,
    (next, own) => {
      settle(steps.config, next, own, "charge");
      runOf(own, slot).at = At.charge;
    },
    "unknownCommit",
  );
  if (steps.config.design.asksAgainAfterUnknownCommit) return;
  steps.offer(
    "a run of % charges, nothing is committed, and it refunds what it believes was charged",
    index,
    (next, own) => {
      own.reversed = Reversed.yes;
      next.shared.balance += 1;
      next.shared.version += 1;
      runOf(own, slot).at = At.refund;
    },
    "unknownCommit",
  );
}

/** Postgres was unreachable beyond the run's timeout. What it may have decided is left to the sweeper and the reconciler. */
export function offerGivingUp(steps: Steps, index: number, slot: number): void {
  steps.offer(
    "a run of % gives up on Postgres",
    index,
    (_, own) => {
      runOf(own, slot).at = At.ack;
    },
    "workerGivesUp",
  );
}

/** The first half of the pipeline. It is not atomic: any step may come between its commands. */
export function offerSettle(steps: Steps, search: Search, slot: number): void {
  const run = runOf(search, slot);
  const { outcome, carriedBalance: balance, carriedVersion: version, carriedSpent: spent } = run;
  const isLeft = search.decision === Decision.callerDisconnected;
  const kind = isLeft ? Message.left : endOf(steps.isKeyed(search.index), search, isAnswer(outcome));
  send(steps, "a run of %: settle.lua", search.index, { kind, balance, version, spent }, (own, { shared }) => {
    if (isAnswer(outcome) && shared.paidBy !== 0) shared.stored = 1;
    runOf(own, slot).at = At.reply;
    forget(runOf(own, slot));
  });
}

/** The second half: the reply is appended to the inbox. */
export function offerReply(steps: Steps, index: number, slot: number, outcome: number): void {
  const isCharge = outcome === Outcome.failureOfCharge;
  const { workerReverses } = steps.config.design;
  const givesBack = workerReverses && isCharge && !steps.isKeyed(index);
  const go = (own: Search) => {
    runOf(own, slot).at = givesBack ? At.giveBack : At.ack;
    runOf(own, slot).outcome = Outcome.none;
  };
  const failure = isCharge && !workerReverses ? Inbox.failureOfCharge : Inbox.failure;
  const answer = outcome === Outcome.otherAnswer ? Inbox.otherAnswer : Inbox.answer;
  const name = isAnswer(outcome) ? "a run of % appends its answer" : "a run of % appends its failure";
  steps.offer(name, index, (_, own) => {
    append(own, isAnswer(outcome) ? answer : failure);
    go(own);
  });
  steps.offer(`${name} [lost]`, index, (_, own) => go(own), "message");
}

/**
 * Only in a design bug. Reversal and message are one step: the message only raises the copy of a balance, and a copy that is too
 * low refuses no caller, because the API reads Postgres first.
 */
export function offerGiveBack(steps: Steps, index: number, slot: number): void {
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own);
    runOf(own, slot).at = At.ack;
  };
  steps.offer("a run of % has no answer for its charge, reverses it in Postgres", index, (next, own) => {
    giveBack(next, own);
    storeNow(steps.config, next);
  });
  steps.offer("a run of % reverses its charge, the balance [lost]", index, giveBack, "message");
}

export function clear(run: Run): void {
  run.at = run.outcome = run.isTold = 0;
  forget(run);
}

/** The balance that it carried is used up. */
function forget(run: Run): void {
  run.carriedBalance = run.carriedVersion = run.carriedSpent = 0;
}
