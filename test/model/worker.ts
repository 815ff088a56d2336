import { At, Clock, Job, type Run, runOf, type Search, type State } from "./state.ts";
import type { Change, Steps } from "./steps.ts";
import {
  clear,
  decideRun,
  offerGiveBack,
  offerGivingUp,
  offerReply,
  offerSettle,
  offerUnknownCharge,
} from "./worker-ending.ts";

/**
 * The workers: the runs of a search's job. A run continues even if its job was given to another run, as a frozen worker does when
 * it resumes.
 *
 * The engine's answer and the decision in Postgres are one step. Until the decision no other process can see the answer, so
 * nothing between them makes a difference.
 */

export function offerWorkers(steps: Steps, search: Search): void {
  offerTaking(steps, search);
  offerTakeOver(steps, search);
  for (const run of search.runs) if (run.at !== At.none) offerRun(steps, search, run);
}

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

/** The job of a dead run is found stalled. As a fault, also the job of a run that is frozen or lost its lock. */
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
  if (at === At.engine || at === At.page) return offerAsking(steps, search, slot);
  if (at === At.charge) {
    steps.offer("asks again to charge % for a run, Postgres decides", index, decide("charge"));
    offerUnknownCharge(steps, search, slot);
    offerGivingUp(steps, index, slot);
  }
  if (at === At.refund) steps.offer("a run of % without an answer, Postgres decides", index, decide("refund"));
  if (at === At.failed) steps.offer("a worker ends the failed job of %, Postgres decides", index, decide("refund"));
  if (at === At.settle) offerSettle(steps, search, slot);
  if (at === At.reply) offerReply(steps, index, slot, outcome);
  if (at === At.giveBack) offerGiveBack(steps, index, slot);
  if (at === At.ack) offerFinish(steps, index, slot);
}

/**
 * The calls of the provider. Once the worker knows that the caller has disconnected, it lets the one under way end, and that is
 * all.
 */
function offerAsking(steps: Steps, search: Search, slot: number): void {
  const { index } = search;
  const { at, isTold } = runOf(search, slot);
  const { design, pages } = steps.config;
  if (isTold === 1 && design.stopsWhenTold)
    return steps.offer(
      "the call for a run of % ends, whose caller disconnected, Postgres decides",
      index,
      (next, own) => decideRun(steps, next, own, slot, "disconnect"),
    );
  steps.offer("the engine answered % for a run, Postgres decides", index, (next, own) =>
    decideRun(steps, next, own, slot, "charge"),
  );
  offerUnknownCharge(steps, search, slot);
  const failed: Change = (next, own) => decideRun(steps, next, own, slot, "refund");
  steps.offer("the engine failed % for a run, Postgres decides", index, failed, "engineFailure");
  if (at === At.engine && pages > 1)
    steps.offer("a page of % arrived, its run asks for the next one", index, (_, own) => {
      if (isTold === 1) steps.breaks("no page is requested once the worker knows that the caller has disconnected");
      runOf(own, slot).at = At.page;
    });
}

function offerFinish(steps: Steps, index: number, slot: number): void {
  steps.offer("a run of % is over", index, (_, own) => {
    // Without the lock, the job belongs to another run.
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

/** A run may die at any moment, and nothing of it is left. */
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
  "while it asks for a further page",
];
