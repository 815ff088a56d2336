import { Api, go } from "./api-states.ts";
import { grant } from "./postgres.ts";
import { storeNow } from "./redis.ts";
import { Caller, Clock, Hold, type Search, type State } from "./state.ts";
import { noSearch, type Steps } from "./steps.ts";
import { offerWorkerCrash } from "./worker.ts";

/** Time, and faults other than lost messages: processes that die, callers that disconnect, a Redis that loses data. */

/**
 * Time passes for each search separately and at any moment, because no promise of the model depends on speed. Once the API is
 * done, grace and fence pass together with the deadline, because a later clock only allows more.
 */
export function offerTime(steps: Steps, { index, caller, clock, api, hold }: Search): void {
  if (caller === Caller.unsent || clock === Clock.fence) return;
  if (api === Api.done)
    return steps.offer("deadline, grace and fence of % pass", index, (_, own) => {
      own.clock = Clock.fence;
    });
  // Only the sweeper reads the grace. Without a hold, present or possible, it makes no difference.
  const { left, shared } = steps.now;
  const isSwept = hold !== Hold.none || api < Api.wait || left.restore > 0 || shared.lateTo === index + 1;
  const goesTo = clock === Clock.deadline && !isSwept ? Clock.fence : clock + 1;
  steps.offer(passing[goesTo] ?? "", index, (_, own) => {
    own.clock = goesTo;
  });
}

const passing = ["", "the deadline of % passes", "the grace of % passes", "the fence of % passes"];

export function offerFaultsOf(steps: Steps, search: Search): void {
  const { index, caller, api, inbox } = search;
  offerWorkerCrash(steps, search);
  if (caller === Caller.waits)
    steps.offer(
      "the caller of % disconnects",
      index,
      (_, own) => {
        own.caller = Caller.disconnected;
      },
      "disconnect",
    );
  if (caller === Caller.waits) offerCancel(steps, search);
  if (api !== Api.idle && api !== Api.done)
    steps.offer("the API of % is killed", index, (_, own) => die(own), "apiCrash");
  // A stopping process waits for everything that it has begun, so it equals an idle one.
  if (api === Api.confirm && !steps.config.design.exitConfirms)
    steps.offer("the API of % exits, its confirmation is dropped", index, (_, own) => go(own, Api.done), "apiExit");
  if (inbox !== 0)
    steps.offer(
      "the inbox of % is lost",
      index,
      (_, own) => {
        own.inbox = 0;
      },
      "inboxLost",
    );
}

/** MCP: the connection stays open. Before the delivery a cancellation equals a disconnect, afterwards it changes nothing. */
function offerCancel(steps: Steps, { index, api }: Search): void {
  const isBegun = api === Api.send;
  steps.offer(
    isBegun ? "the caller of % cancels amid the answer" : "the caller of % cancels",
    index,
    (_, own) => {
      if (!isBegun) own.caller = Caller.disconnected;
      else if (!steps.config.design.ignoresLateCancels) {
        // The answer is being sent, and its charge is reversed.
        own.caller = Caller.delivered;
        go(own, Api.reverse);
      }
    },
    "cancel",
  );
}

function die(own: Search): void {
  if (own.caller === Caller.waits) own.caller = Caller.disconnected;
  // The only error in the caller's favour.
  if (own.api === Api.confirm) own.inDoubt = 1;
  go(own, Api.done);
}

export function offerFaults(steps: Steps): void {
  const { shared } = steps.now;
  steps.offer("Redis is flushed", noSearch, (next) => flush(steps, next), "flush");
  steps.offer("Redis writes a snapshot", noSearch, (next) => takeSnapshot(next), "snapshot");
  if (shared.snapshot === 1)
    steps.offer("Redis is restored from the snapshot", noSearch, (next) => restore(next), "restore");
  steps.offer(
    "credit is granted, the balance is stored",
    noSearch,
    (next) => {
      grant(next);
      storeNow(steps.config, next);
    },
    "topUp",
  );
  steps.offer("credit is granted, the balance [lost]", noSearch, (next) => grant(next), "topUp");
}

function flush({ config }: Steps, next: State): void {
  const { shared } = next;
  shared.copy = shared.copyVersion = shared.copySpent = shared.record = shared.recordOwner = 0;
  shared.lost = 1;
  for (const search of next.searches) {
    search.hold = search.unpaid = search.job = search.takeOvers = search.inbox = 0;
    if (!config.design.evidenceInPostgres) search.undelivered = 0;
  }
}

/**
 * The snapshot has no inbox: unread entries are lost at the restart. If they came back, that would equal an inbox that was read
 * just before, because reading changes nothing in Redis.
 */
function takeSnapshot(next: State): void {
  const { shared } = next;
  shared.snapshot = 1;
  shared.snapshotCopy = shared.copy;
  shared.snapshotCopyVersion = shared.copyVersion;
  shared.snapshotCopySpent = shared.copySpent;
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
  shared.copySpent = shared.snapshotCopySpent;
  shared.record = shared.snapshotRecord;
  shared.recordOwner = shared.snapshotRecordOwner;
  shared.snapshotCopy = shared.snapshotCopyVersion = shared.snapshotCopySpent = 0;
  shared.snapshotRecord = shared.snapshotRecordOwner = 0;
  shared.snapshot = 2;
  shared.lost = shared.newRun = 1;
  for (const search of next.searches) {
    search.hold = search.snapshotHold;
    search.job = search.snapshotJob;
    search.takeOvers = search.snapshotTakeOvers;
    search.inbox = search.unpaid = 0;
    search.snapshotHold = search.snapshotJob = search.snapshotTakeOvers = 0;
  }
}
