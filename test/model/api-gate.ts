import { Api, carry, go, refuse } from "./api-states.ts";
import { admit, enqueue, Message, putLate, send } from "./redis.ts";
import { Caller, Clock, KeyRecord, type Search, type State } from "./state.ts";
import { type Change, noSearch, type Steps } from "./steps.ts";

/** The API before a search is in the queue: admission, reads of Postgres, the wait for the first request, enqueueing. */

/**
 * A caller sends the next search. Those before it have been sent, in whatever state they are: two searches that do not
 * differ are interchangeable, so their order makes no difference.
 */
export function offerSending(steps: Steps): void {
  const unsent = steps.now.searches.find(({ caller }) => caller === Caller.unsent);
  if (!unsent) return;
  steps.offer("a caller sends %", unsent.index, (_, own) => {
    own.caller = Caller.waits;
    own.api = Api.admit;
  });
}

export function offerGate(steps: Steps, own: Search): void {
  const { index, api } = own;
  if (api === Api.admit) offerAdmission(steps, index, own.clock);
  else if (api === Api.seedRead) {
    steps.offer("API of %: reads the balance in Postgres", index, (next, search) => {
      carry(search, Api.seedWrite, next.shared.balance, next.shared.version);
    });
    offerAway(steps, index);
  } else if (api === Api.seedWrite) offerSeed(steps, index, own.carriedBalance, own.carriedVersion);
  else if (api === Api.askKey) {
    steps.offer("API of %: asks Postgres whether the key has paid", index, (next, search) => {
      if (next.shared.paidBy === 0) {
        carry(search, Api.askBalance, 0, search.carriedVersion);
        return "not yet";
      }
      search.free = 1;
      go(search, Api.admit);
      return "it has, so this costs nothing";
    });
    offerAway(steps, index);
  } else if (api === Api.askBalance) {
    steps.offer("API of %: asks Postgres for a newer balance", index, (next, search) => {
      const { balance, version } = next.shared;
      if (version <= search.carriedVersion) return refuseForCredits(steps, next, search);
      carry(search, Api.seedWrite, balance, version);
      return "it has one";
    });
    offerAway(steps, index);
  } else if (api === Api.keyWait) offerKeyWait(steps, index, own);
  else if (api === Api.enqueue) offerEnqueue(steps, index);
}

function offerAdmission(steps: Steps, index: number, clock: number): void {
  if (clock >= Clock.deadline) {
    steps.offer("API of %: 504, the deadline passed before the gate", index, (_, own) => refuse(own));
    return;
  }
  steps.offer("API of %: admit.lua", index, (next, own) => pass(steps, next, own));
  const ran: Change = (next, own) => admit(steps.config, next, own);
  const name = "API of %: 503, no reply from admit.lua";
  steps.offer(`${name}, which ran`, index, unknown(ran), "admissionUnknown");
  steps.offer(`${name}, which never ran`, index, unknown(notAtAll), "admissionUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.offer(`${name}, which runs later`, index, unknown(later(Message.admit)), "admissionUnknown");
}

/** The caller has its 503 while the API undoes what may have happened. */
const unknown =
  (change: Change): Change =>
  (next, own) => {
    change(next, own);
    refuse(own);
    go(own, Api.undo);
  };
const notAtAll: Change = () => undefined;
const later =
  (kind: number): Change =>
  (next, own) =>
    putLate(next, own, { kind, balance: 0, version: 0 });

function pass(steps: Steps, next: State, own: Search): string {
  const admission = admit(steps.config, next, own);
  if (admission === "held") go(own, Api.enqueue);
  else if (admission === "replayed") go(own, Api.deliver);
  else if (admission === "waiting") go(own, Api.keyWait);
  else if (admission === "cold") go(own, Api.seedRead);
  else {
    own.carriedVersion = next.shared.copyVersion;
    if (!steps.config.design.asksBeforeRefusing) return refuseForCredits(steps, next, own);
    carry(own, steps.isKeyed(own.index) ? Api.askKey : Api.askBalance, 0, own.carriedVersion);
  }
  return admission;
}

/** 402. Whether that is right depends on what Postgres has at this moment. */
function refuseForCredits(steps: Steps, { shared }: State, own: Search): string {
  if (steps.isKeyed(own.index) && shared.paidBy !== 0) steps.breaks("what a key has paid is not refused for credits");
  else if (shared.version > own.carriedVersion) steps.breaks("no caller is refused for credits by an old balance");
  refuse(own);
  return "402";
}

/** Postgres is unreachable: 503, and nothing is held. */
function offerAway(steps: Steps, index: number): void {
  steps.offer("API of %: 503, Postgres is unreachable", index, (_, own) => refuse(own), "postgresAway");
}

function offerSeed(steps: Steps, index: number, balance: number, version: number): void {
  const sent = { kind: Message.balance, balance, version };
  send(steps, "API of %: stores the balance in Redis", index, sent, (own) => go(own, Api.admit));
}

/** A repeat whose first request still runs. A failure is shared with those that wait; then, or after a flush, the key is free. */
function offerKeyWait(steps: Steps, index: number, own: Search): void {
  const { record } = steps.now.shared;
  if (record === KeyRecord.answered)
    steps.offer("API of %: the first was answered", index, (_, search) => go(search, Api.deliver));
  if (record === KeyRecord.failed)
    steps.offer("API of %: shares the failure of the first", index, (_, search) => refuse(search));
  if (record === KeyRecord.none)
    steps.offer("API of %: the record was removed, tries the gate again", index, (_, search) => go(search, Api.admit));
  if (own.clock >= Clock.deadline || own.caller === Caller.disconnected)
    steps.offer("API of %: stops waiting for the first", index, (_, search) => refuse(search));
}

/** A failure under a key is forgotten a few seconds later. */
export function offerForgetting(steps: Steps): void {
  if (steps.now.shared.record !== KeyRecord.failed) return;
  steps.offer("the failure under the key expires in Redis", noSearch, ({ shared }) => {
    shared.record = shared.recordOwner = 0;
  });
}

function offerEnqueue(steps: Steps, index: number): void {
  steps.offer("API of %: enqueues the job", index, (_, own) => {
    enqueue(own);
    go(own, Api.wait);
  });
  const name = "API of %: 503, enqueueing of unknown outcome";
  steps.offer(
    `${name}, the job is there`,
    index,
    unknown((_, own) => enqueue(own)),
    "enqueueUnknown",
  );
  steps.offer(`${name}, no job`, index, unknown(notAtAll), "enqueueUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.offer(`${name}, the job comes later`, index, unknown(later(Message.enqueue)), "enqueueUnknown");
}
