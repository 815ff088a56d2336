import { isPaid, reverse, settle } from "./postgres.ts";
import { append, currentBalance, endOf, Message, send, storeBalance } from "./redis.ts";
import { Clock, Decision, Inbox, Job, type Run, runOf, type Search, type State } from "./state.ts";
import type { Steps } from "./steps.ts";

/**
 * The workers: the runs of a search's job. A run goes on although its job was given to another one, as a frozen worker does
 * when it resumes.
 *
 * The engine's answer and the decision in Postgres are one step: until the decision no other process can see that there is an
 * answer, so nothing that happens between them makes a difference.
 */

const At = { none: 0, engine: 1, charge: 2, refund: 3, failed: 4, settle: 5, reply: 6, giveBack: 7, ack: 8 } as const;
/** What a run reports: its answer; a failure; a failure although its search is charged. */
const Outcome = { none: 0, answer: 1, failure: 2, failureOfCharge: 3 } as const;

export function offerWorkers(steps: Steps, search: Search): void {
  offerTaking(steps, search);
  offerTakeOver(steps, search);
  for (const run of search.runs) if (run.at !== At.none) offerRun(steps, search, run);
}

/** Whether Postgres has decided on a run's answer, and the answer is not remembered yet. */
export const isAnswering = ({ at, outcome }: Run) => at === At.settle && outcome === Outcome.answer;

function offerTaking(steps: Steps, { index, job, clock, runs }: Search): void {
  const free = runs.find(({ at }) => at === At.none);
  if (job !== Job.waiting || !free) return;
  const isLate = clock >= Clock.deadline;
  const name = isLate ? "a worker takes the job of %, too late to ask the engine" : "a worker takes the job of %";
  steps.offer(name, index, (_, own) => {
    own.job = Job.active + free.index;
    runOf(own, free.index).at = isLate ? At.refund : At.engine;
  });
}

/** A job whose run died is found stalled; as a fault also one whose run is only frozen, or has lost its lock. */
function offerTakeOver(steps: Steps, search: Search): void {
  const { index, job, takeOvers, runs } = search;
  if (job < Job.active) return;
  const isDead = runOf(search, job - Job.active).at === At.none;
  const fault = isDead ? undefined : "workerStall";
  const found = isDead ? "the job of %, whose worker died," : "the job of %, whose worker is frozen,";
  if (takeOvers < steps.config.takeOversMax)
    return steps.offer(
      `${found} goes back to the queue`,
      index,
      (_, own) => {
        own.job = Job.waiting;
        own.takeOvers += 1;
      },
      fault,
    );
  const free = runs.find(({ at }) => at === At.none);
  if (!free) return;
  steps.offer(
    `${found} was taken over too often and fails`,
    index,
    (_, own) => {
      own.job = own.takeOvers = 0;
      runOf(own, free.index).at = At.failed;
    },
    fault,
  );
}

function offerRun(steps: Steps, search: Search, { index: slot, at, outcome }: Run): void {
  const { index } = search;
  const decide = (wanted: "charge" | "refund") => (next: State, own: Search) =>
    decideRun(steps, next, own, slot, wanted);
  if (at === At.engine || at === At.charge) {
    const first = at === At.engine ? "the engine answered % for" : "asks again to charge % for";
    steps.offer(`${first} a run, Postgres decides`, index, decide("charge"));
    offerUnknownCharge(steps, search, slot);
  }
  if (at === At.charge) offerGivingUp(steps, index, slot);
  if (at === At.engine)
    steps.offer("the engine failed % for a run, Postgres decides", index, decide("refund"), "engineFailure");
  if (at === At.refund) steps.offer("a run of % without an answer, Postgres decides", index, decide("refund"));
  if (at === At.failed) steps.offer("a worker ends the failed job of %, Postgres decides", index, decide("refund"));
  if (at === At.settle) offerSettle(steps, search, slot);
  if (at === At.reply) offerReply(steps, index, slot, outcome);
  if (at === At.giveBack) offerGiveBack(steps, index, slot);
  if (at === At.ack) offerFinish(steps, index, slot);
}

function offerFinish(steps: Steps, index: number, slot: number): void {
  steps.offer("a run of % is over", index, (_, own) => {
    // Without the lock, whose job it is now is another one's business.
    if (own.job === Job.active + slot) own.job = own.takeOvers = 0;
    clear(runOf(own, slot));
  });
}

/** An eager step: once no worker can die or freeze any more, and Redis keeps its jobs, no step depends on when a run ends. */
export function offerEnd(steps: Steps, { index, runs }: Search): boolean {
  const { workerCrash, workerStall, restore } = steps.now.left;
  if (workerCrash + workerStall + restore > 0) return false;
  const run = runs.find(({ at }) => at === At.ack);
  if (run) offerFinish(steps, index, run.index);
  return run !== undefined;
}

function decideRun(steps: Steps, next: State, own: Search, slot: number, wanted: "charge" | "refund"): string {
  const run = runOf(own, slot);
  const isFirst = own.decision === Decision.none;
  settle(steps.config, next, own, wanted);
  if (wanted === "charge" && isPaid(own) && own.reversed === 0) run.outcome = Outcome.answer;
  else if (!isPaid(own)) run.outcome = Outcome.failure;
  else run.outcome = Outcome.failureOfCharge;
  run.at = At.settle;
  run.carriedBalance = next.shared.balance;
  run.carriedVersion = next.shared.version;
  return `${isFirst ? "" : "before: "}${decisionNames[own.decision]}${own.reversed ? ", reversed" : ""}`;
}

const decisionNames = ["", "charge", "refund", "already paid", "out of credits"];

/** The commit's outcome is unknown, so it is retried, and finds what was decided. */
function offerUnknownCharge(steps: Steps, { index, decision }: Search, slot: number): void {
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
      own.reversed = 1;
      next.shared.balance += 1;
      next.shared.version += 1;
      runOf(own, slot).at = At.refund;
    },
    "unknownCommit",
  );
}

/** Postgres was unreachable beyond the run's timeout: what it may have decided is left to the sweeper and the reconciler. */
function offerGivingUp(steps: Steps, index: number, slot: number): void {
  steps.offer(
    "a run of % gives up on Postgres",
    index,
    (_, own) => {
      runOf(own, slot).at = At.ack;
    },
    "workerGivesUp",
  );
}

/** First half of the pipeline. A pipeline is not atomic: any step may come between its commands. */
function offerSettle(steps: Steps, search: Search, slot: number): void {
  const { outcome, carriedBalance: balance, carriedVersion: version } = runOf(search, slot);
  const kind = endOf(steps.isKeyed(search.index), search, outcome === Outcome.answer);
  send(steps, "a run of %: settle.lua", search.index, { kind, balance, version }, (own) => {
    runOf(own, slot).at = At.reply;
    runOf(own, slot).carriedBalance = runOf(own, slot).carriedVersion = 0;
  });
}

/** Second half: the answer is appended to the inbox. Under a key it may be another run's answer, which is as good. */
function offerReply(steps: Steps, index: number, slot: number, outcome: number): void {
  const isCharge = outcome === Outcome.failureOfCharge;
  const { workerReverses } = steps.config.design;
  const givesBack = workerReverses && isCharge && !steps.isKeyed(index);
  const go = (own: Search) => {
    runOf(own, slot).at = givesBack ? At.giveBack : At.ack;
    runOf(own, slot).outcome = Outcome.none;
  };
  const failure = isCharge && !workerReverses ? Inbox.failureOfCharge : Inbox.failure;
  const name = outcome === Outcome.answer ? "a run of % appends its answer" : "a run of % appends its failure";
  steps.offer(name, index, (_, own) => {
    append(own, outcome === Outcome.answer ? Inbox.answer : failure);
    go(own);
  });
  steps.offer(`${name} [lost]`, index, (_, own) => go(own), "message");
}

/**
 * Only in a design bug. Reversal and its message are one step: the message only raises the copy of a balance, and a copy that
 * is too low refuses no caller, because Postgres is read first.
 */
function offerGiveBack(steps: Steps, index: number, slot: number): void {
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own);
    runOf(own, slot).at = At.ack;
  };
  steps.offer("a run of % has no answer for its charge, reverses it in Postgres", index, (next, own) => {
    giveBack(next, own);
    storeNow(steps, next);
  });
  steps.offer("a run of % reverses its charge, the balance [lost]", index, giveBack, "message");
}

function storeNow(steps: Steps, next: State): void {
  const { balance, version } = currentBalance(next, Message.balance);
  storeBalance(steps.config, next, balance, version);
}

/** Any run dies at any moment, and nothing of it is left. */
export function offerWorkerCrash(steps: Steps, { index, runs }: Search): void {
  for (const run of runs)
    if (run.at !== At.none)
      steps.offer(
        `the worker of % dies ${stateNames[run.at]}`,
        index,
        (_, own) => clear(runOf(own, run.index)),
        "workerCrash",
      );
}

const stateNames = [
  "",
  "while it calls the engine",
  "before it asks Postgres again",
  "before it asks for a refund",
  "before it ends the failed job",
  "after the decision",
  "after settle.lua",
  "after its failure was appended",
  "before it finishes the job",
];

function clear(run: Run): void {
  run.at = run.outcome = run.carriedBalance = run.carriedVersion = 0;
}
