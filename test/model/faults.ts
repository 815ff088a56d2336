import { Api, go } from "./api-states.ts";
import { grant } from "./postgres.ts";
import { currentPair, Message, storePair } from "./redis.ts";
import { Caller, Clock, Hold, type Search, type State } from "./state.ts";
import { nobody, type Steps } from "./steps.ts";
import { offerWorkerCrash } from "./worker.ts";

/** Time, and what goes wrong beyond single messages: processes that die, callers who leave, a Redis that forgets. */

/**
 * Time passes for each search by itself and whenever it likes, whatever its API is doing: no promise of the model rests on
 * anybody being fast. Where the API is through, the sweeper's grace and the fence come with the deadline, because a later
 * clock only allows more.
 */
export function offerTime(steps: Steps, { place, caller, clock, api, hold }: Search): void {
  if (caller === Caller.unsent || clock === Clock.fence) return;
  if (api === Api.done)
    return steps.take("deadline, grace and fence of % pass", place, (_, own) => {
      own.clock = Clock.fence;
    });
  // The grace is the sweeper's alone: where there is no hold for it, and none can come, it makes no difference.
  const { left, shared } = steps.now;
  const isSwept = hold !== Hold.none || api < Api.wait || left.restore > 0 || shared.lateTo === place + 1;
  const goesTo = clock === Clock.deadline && !isSwept ? Clock.fence : clock + 1;
  steps.take(passing[goesTo] ?? "", place, (_, own) => {
    own.clock = goesTo;
  });
}

const passing = ["", "the deadline of % passes", "the grace of % passes", "the fence of % passes"];

export function offerFaultsOf(steps: Steps, search: Search): void {
  const { place, caller, api, inbox } = search;
  offerWorkerCrash(steps, search);
  if (caller === Caller.waits)
    steps.take(
      "the caller of % hangs up",
      place,
      (_, own) => {
        own.caller = Caller.gone;
      },
      "hangUp",
    );
  if (api !== Api.idle && api !== Api.done)
    steps.take("the API of % is killed", place, (_, own) => die(own), "apiCrash");
  // A process that stops waits for all that it has begun: nothing is different then from one that is only idle.
  if (api === Api.confirm && !steps.config.design.exitConfirms)
    steps.take("the API of % exits, its confirmation is dropped", place, (_, own) => go(own, Api.done), "apiExit");
  if (inbox !== 0)
    steps.take(
      "the inbox of % is lost",
      place,
      (_, own) => {
        own.inbox = 0;
      },
      "inboxLost",
    );
}

function die(own: Search): void {
  if (own.caller === Caller.waits) own.caller = Caller.gone;
  // The one case in the caller's favour.
  if (own.api === Api.confirm) own.inDoubt = 1;
  go(own, Api.done);
}

export function offerFaults(steps: Steps): void {
  const { shared } = steps.now;
  steps.take("Redis is flushed", nobody, (next) => flush(steps, next), "flush");
  steps.take("Redis writes a snapshot", nobody, (next) => takeSnapshot(next), "snapshot");
  if (shared.snapshot === 1)
    steps.take("Redis is restored from the snapshot", nobody, (next) => restore(next), "restore");
  steps.take(
    "credit is granted, the pair is stored",
    nobody,
    (next) => {
      grant(next);
      const { balance, version } = currentPair(next, Message.pair);
      storePair(steps.config, next, balance, version);
    },
    "topUp",
  );
  steps.take("credit is granted, the pair [lost]", nobody, (next) => grant(next), "topUp");
  // All callers of the organization stay away, and all workers are down meanwhile, or Redis comes back from before.
  const isQuiet = steps.now.searches.every(({ clock, api }) => clock === Clock.fence && api === Api.done);
  if (isQuiet)
    steps.take(
      "a quarter of an hour without a caller, and a new caretaker",
      nobody,
      (next) => {
        next.shared.quiet = next.shared.newRun = 1;
      },
      "longQuiet",
    );
}

function flush({ config }: Steps, next: State): void {
  const { shared } = next;
  shared.copy = shared.copyVersion = shared.record = shared.recordOwner = 0;
  shared.lost = 1;
  for (const search of next.searches) {
    search.hold = search.job = search.takeOvers = search.inbox = 0;
    if (!config.design.evidenceInPostgres) search.undelivered = 0;
  }
}

/**
 * The inbox is left out, and what is unread at the restart is lost. If it came back, that would be as if it had been read
 * just before: reading changes nothing in Redis.
 */
function takeSnapshot(next: State): void {
  const { shared } = next;
  shared.snapshot = 1;
  shared.snapshotCopy = shared.copy;
  shared.snapshotCopyVersion = shared.copyVersion;
  shared.snapshotRecord = shared.record;
  shared.snapshotRecordOwner = shared.recordOwner;
  for (const search of next.searches) {
    search.snapshotHold = search.hold;
    search.snapshotJob = search.job;
    search.snapshotTakeOvers = search.takeOvers;
  }
}

function restore(next: State): void {
  const { shared } = next;
  shared.copy = shared.snapshotCopy;
  shared.copyVersion = shared.snapshotCopyVersion;
  shared.record = shared.snapshotRecord;
  shared.recordOwner = shared.snapshotRecordOwner;
  shared.snapshotCopy = shared.snapshotCopyVersion = shared.snapshotRecord = shared.snapshotRecordOwner = 0;
  shared.snapshot = 2;
  shared.lost = shared.newRun = 1;
  for (const search of next.searches) {
    search.hold = search.snapshotHold;
    search.job = search.snapshotJob;
    search.takeOvers = search.snapshotTakeOvers;
    search.inbox = 0;
    search.snapshotHold = search.snapshotJob = search.snapshotTakeOvers = 0;
  }
}
