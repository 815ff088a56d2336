import { isPaid, reverse, settle } from "./postgres.ts";
import { append, currentPair, endOf, Message, send, storePair } from "./redis.ts";
import { Clock, Decision, Inbox, Job, type Run, runOf, type Search, type State } from "./state.ts";
import type { Steps } from "./steps.ts";

/**
 * The workers: the runs of a search's job. A run goes on although its job was given to another one; that is what a frozen
 * worker does when it wakes up.
 *
 * The engine's answer and the decision in Postgres are one step: until the decision, nobody else can see that there is an
 * answer, so nothing that happens between them could tell the difference.
 */

const At = { none: 0, engine: 1, charge: 2, refund: 3, failed: 4, settle: 5, reply: 6, giveBack: 7, ack: 8 } as const;
/** What a run tells: its answer; a failure; a failure although its search is charged. */
const Outcome = { none: 0, answer: 1, failure: 2, failureOfCharge: 3 } as const;

export function offerWorkers(steps: Steps, search: Search): void {
  offerTaking(steps, search);
  offerTakeOver(steps, search);
  for (const run of search.runs) if (run.at !== At.none) offerRun(steps, search, run);
}

/** Whether a run has an answer that Postgres has decided on, and that is not yet remembered. */
export const isAnswering = ({ at, outcome }: Run) => at === At.settle && outcome === Outcome.answer;

function offerTaking(steps: Steps, { place, job, clock, runs }: Search): void {
  const free = runs.find(({ at }) => at === At.none);
  if (job !== Job.waiting || !free) return;
  const isLate = clock >= Clock.deadline;
  const name = isLate ? "a worker takes the job of %, too late to ask the engine" : "a worker takes the job of %";
  steps.take(name, place, (_, own) => {
    own.job = Job.active + free.place;
    runOf(own, free.place).at = isLate ? At.refund : At.engine;
  });
}

/** A job whose run died is found stalled; as a fault one whose run is only frozen, or has lost its lock. */
function offerTakeOver(steps: Steps, search: Search): void {
  const { place, job, takeOvers, runs } = search;
  if (job < Job.active) return;
  const isDead = runOf(search, job - Job.active).at === At.none;
  const fault = isDead ? undefined : "workerStall";
  const found = isDead ? "the job of %, whose worker died," : "the job of %, whose worker is frozen,";
  if (takeOvers < steps.config.takeOversMax)
    return steps.take(
      `${found} goes back to the queue`,
      place,
      (_, own) => {
        own.job = Job.waiting;
        own.takeOvers += 1;
      },
      fault,
    );
  const free = runs.find(({ at }) => at === At.none);
  if (!free) return;
  steps.take(
    `${found} was taken over too often and fails`,
    place,
    (_, own) => {
      own.job = own.takeOvers = 0;
      runOf(own, free.place).at = At.failed;
    },
    fault,
  );
}

function offerRun(steps: Steps, search: Search, { place: slot, at, outcome }: Run): void {
  const { place } = search;
  const decide = (wanted: "charge" | "refund") => (next: State, own: Search) =>
    decideRun(steps, next, own, slot, wanted);
  if (at === At.engine || at === At.charge) {
    const first = at === At.engine ? "the engine answered % for" : "asks again to charge % for";
    steps.take(`${first} a run, Postgres decides`, place, decide("charge"));
    offerUnknownCharge(steps, search, slot);
  }
  if (at === At.charge) offerGivingUp(steps, place, slot);
  if (at === At.engine)
    steps.take("the engine failed % for a run, Postgres decides", place, decide("refund"), "engineFailure");
  if (at === At.refund) steps.take("a run of % without an answer, Postgres decides", place, decide("refund"));
  if (at === At.failed) steps.take("a worker ends the failed job of %, Postgres decides", place, decide("refund"));
  if (at === At.settle) offerSettle(steps, search, slot);
  if (at === At.reply) offerReply(steps, place, slot, outcome);
  if (at === At.giveBack) offerGiveBack(steps, place, slot);
  if (at === At.ack) offerFinish(steps, place, slot);
}

function offerFinish(steps: Steps, place: number, slot: number): void {
  steps.take("a run of % is over", place, (_, own) => {
    // Without the lock, whose job it is now is another one's business.
    if (own.job === Job.active + slot) own.job = own.takeOvers = 0;
    clear(runOf(own, slot));
  });
}

/** An eager step: once no worker can die or freeze any more, and Redis keeps its jobs, nobody sees when a run ends. */
export function offerEnd(steps: Steps, { place, runs }: Search): boolean {
  const { workerCrash, workerStall, restore } = steps.now.left;
  if (workerCrash + workerStall + restore > 0) return false;
  const run = runs.find(({ at }) => at === At.ack);
  if (run) offerFinish(steps, place, run.place);
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
  run.pairBalance = next.shared.balance;
  run.pairVersion = next.shared.version;
  return `${isFirst ? "" : "before: "}${decisionNames[own.decision]}${own.reversed ? ", reversed" : ""}`;
}

const decisionNames = ["", "charge", "refund", "already paid", "out of credits"];

/** The commit's outcome stays unknown, so it is asked again: a known decision is found then. */
function offerUnknownCharge(steps: Steps, { place, decision }: Search, slot: number): void {
  if (decision !== Decision.none) return;
  steps.take(
    "a run of % charges, commits, never hears of it",
    place,
    (next, own) => {
      settle(steps.config, next, own, "charge");
      runOf(own, slot).at = At.charge;
    },
    "unknownCommit",
  );
  if (steps.config.design.asksAgainAfterUnknownCommit) return;
  steps.take(
    "a run of % charges, nothing is committed, and gives back what it believes was taken",
    place,
    (next, own) => {
      own.reversed = 1;
      next.shared.balance += 1;
      next.shared.version += 1;
      runOf(own, slot).at = At.refund;
    },
    "unknownCommit",
  );
}

/** Postgres stayed away beyond the run's patience: what it may have decided is left to the sweeper and the reconciler. */
function offerGivingUp(steps: Steps, place: number, slot: number): void {
  steps.take(
    "a run of % loses patience with Postgres",
    place,
    (_, own) => {
      runOf(own, slot).at = At.ack;
    },
    "workerGivesUp",
  );
}

/** First half of the pipeline. A pipeline is not atomic: anything may come between its commands. */
function offerSettle(steps: Steps, search: Search, slot: number): void {
  const { outcome, pairBalance: balance, pairVersion: version } = runOf(search, slot);
  const kind = endOf(steps.isKeyed(search.place), search, outcome === Outcome.answer);
  send(steps, "a run of %: settle.lua", search.place, { kind, balance, version }, (own) => {
    runOf(own, slot).at = At.reply;
    runOf(own, slot).pairBalance = runOf(own, slot).pairVersion = 0;
  });
}

/** Second half: the answer goes into the inbox. Under a key another run's answer may take its place, which is one as well. */
function offerReply(steps: Steps, place: number, slot: number, outcome: number): void {
  const isCharge = outcome === Outcome.failureOfCharge;
  const { workerReverses } = steps.config.design;
  const givesBack = workerReverses && isCharge && !steps.isKeyed(place);
  const go = (own: Search) => {
    runOf(own, slot).at = givesBack ? At.giveBack : At.ack;
    runOf(own, slot).outcome = Outcome.none;
  };
  const failure = isCharge && !workerReverses ? Inbox.failureOfCharge : Inbox.failure;
  const name = outcome === Outcome.answer ? "a run of % appends its answer" : "a run of % appends its failure";
  steps.take(name, place, (_, own) => {
    append(own, outcome === Outcome.answer ? Inbox.answer : failure);
    go(own);
  });
  steps.take(`${name} [lost]`, place, (_, own) => go(own), "message");
}

/**
 * Only where the bug is planted. Reversal and its message in one step: the message only raises the copy of a balance, and a copy that is too low refuses
 * nobody, because Postgres is asked first.
 */
function offerGiveBack(steps: Steps, place: number, slot: number): void {
  const giveBack = (next: State, own: Search) => {
    reverse(steps.config, next, own);
    runOf(own, slot).at = At.ack;
  };
  steps.take("a run of % has no answer for its charge, gives it back in Postgres", place, (next, own) => {
    giveBack(next, own);
    storeNow(steps, next);
  });
  steps.take("a run of % gives its charge back, the pair [lost]", place, giveBack, "message");
}

function storeNow(steps: Steps, next: State): void {
  const { balance, version } = currentPair(next, Message.pair);
  storePair(steps.config, next, balance, version);
}

/** Any run dies at any moment; nothing of it is left. */
export function offerWorkerCrash(steps: Steps, { place, runs }: Search): void {
  for (const run of runs)
    if (run.at !== At.none)
      steps.take(
        `the worker of % dies ${placeNames[run.at]}`,
        place,
        (_, own) => clear(runOf(own, run.place)),
        "workerCrash",
      );
}

const placeNames = [
  "",
  "while the engine is asked",
  "before it asks Postgres again",
  "before it asks for a refund",
  "before it ends the failed job",
  "after the decision",
  "after settle.lua",
  "after its failure was appended",
  "before it finishes the job",
];

function clear(run: Run): void {
  run.at = run.outcome = run.pairBalance = run.pairVersion = 0;
}
