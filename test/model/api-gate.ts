import { Api, carry, go, refuse } from "./api-states.ts";
import { admit, enqueue, Message, putLate, send } from "./redis.ts";
import { Caller, Clock, KeyRecord, type Search, type State } from "./state.ts";
import { type Change, nobody, type Steps } from "./steps.ts";

/** The API before a search is in the queue: admission, what must be asked of Postgres, the wait for the first, enqueueing. */

/**
 * A caller sends the next search. Those before it were sent, in whatever state they are: which of two searches that have
 * nothing to tell them apart comes first makes no difference.
 */
export function offerSending(steps: Steps): void {
  const unsent = steps.now.searches.find(({ caller }) => caller === Caller.unsent);
  if (!unsent) return;
  steps.take("a caller sends %", unsent.place, (_, own) => {
    own.caller = Caller.waits;
    own.api = Api.admit;
  });
}

export function offerGate(steps: Steps, own: Search): void {
  const { place, api } = own;
  if (api === Api.admit) offerAdmission(steps, place, own.clock);
  else if (api === Api.seedRead) {
    steps.take("API of %: reads the pair in Postgres", place, (next, search) => {
      carry(search, Api.seedWrite, next.shared.balance, next.shared.version);
    });
    offerAway(steps, place);
  } else if (api === Api.seedWrite) offerSeed(steps, place, own.pairBalance, own.pairVersion);
  else if (api === Api.askKey) {
    steps.take("API of %: asks Postgres whether the key has paid", place, (next, search) => {
      if (next.shared.paidBy === 0) {
        carry(search, Api.askPair, 0, search.pairVersion);
        return "not yet";
      }
      search.free = 1;
      go(search, Api.admit);
      return "it has, so this costs nothing";
    });
    offerAway(steps, place);
  } else if (api === Api.askPair) {
    steps.take("API of %: asks Postgres for a newer pair", place, (next, search) => {
      const { balance, version } = next.shared;
      if (version <= search.pairVersion) return refuseForCredits(steps, next, search);
      carry(search, Api.seedWrite, balance, version);
      return "it has one";
    });
    offerAway(steps, place);
  } else if (api === Api.keyWait) offerKeyWait(steps, place, own);
  else if (api === Api.enqueue) offerEnqueue(steps, place);
}

function offerAdmission(steps: Steps, place: number, clock: number): void {
  if (clock >= Clock.deadline) {
    steps.take("API of %: 504, its time ran out before the gate", place, (_, own) => refuse(own));
    return;
  }
  steps.take("API of %: admit.lua", place, (next, own) => pass(steps, next, own));
  const ran: Change = (next, own) => admit(steps.config, next, own);
  const name = "API of %: 503, no reply from admit.lua";
  steps.take(`${name}, which ran`, place, unknown(ran), "admissionUnknown");
  steps.take(`${name}, which never ran`, place, unknown(notAtAll), "admissionUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.take(`${name}, which runs later`, place, unknown(later(Message.admit)), "admissionUnknown");
}

/** The caller is told 503 already while the API undoes what may have happened. */
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
    own.pairVersion = next.shared.copyVersion;
    if (!steps.config.design.asksBeforeRefusing) return refuseForCredits(steps, next, own);
    carry(own, steps.isKeyed(own.place) ? Api.askKey : Api.askPair, 0, own.pairVersion);
  }
  return admission;
}

/** 402. What Postgres had asked of it at this very moment decides whether it is right. */
function refuseForCredits(steps: Steps, { shared }: State, own: Search): string {
  if (steps.isKeyed(own.place) && shared.paidBy !== 0) steps.breaks("what a key has paid is not refused for credits");
  else if (shared.version > own.pairVersion) steps.breaks("nobody is refused for credits by an old balance");
  refuse(own);
  return "402";
}

/** Postgres cannot be asked: 503, and nothing is held. */
function offerAway(steps: Steps, place: number): void {
  steps.take("API of %: 503, Postgres is out of reach", place, (_, own) => refuse(own), "postgresAway");
}

function offerSeed(steps: Steps, place: number, balance: number, version: number): void {
  const sent = { kind: Message.pair, balance, version };
  send(steps, "API of %: stores the pair in Redis", place, sent, (own) => go(own, Api.admit));
}

/** A repeat whose first still runs. A failure is told to those who wait; then, or after a flush, the key is free again. */
function offerKeyWait(steps: Steps, place: number, own: Search): void {
  const { record } = steps.now.shared;
  if (record === KeyRecord.answered)
    steps.take("API of %: the first was answered", place, (_, search) => go(search, Api.deliver));
  if (record === KeyRecord.failed)
    steps.take("API of %: shares the failure of the first", place, (_, search) => refuse(search));
  if (record === KeyRecord.none)
    steps.take("API of %: the record is gone, tries the gate again", place, (_, search) => go(search, Api.admit));
  if (own.clock >= Clock.deadline || own.caller === Caller.gone)
    steps.take("API of %: stops waiting for the first", place, (_, search) => refuse(search));
}

/** A failure under a key is forgotten a few seconds later. */
export function offerForgetting(steps: Steps): void {
  if (steps.now.shared.record !== KeyRecord.failed) return;
  steps.take("the failure under the key expires in Redis", nobody, ({ shared }) => {
    shared.record = shared.recordOwner = 0;
  });
}

function offerEnqueue(steps: Steps, place: number): void {
  steps.take("API of %: enqueues the job", place, (_, own) => {
    enqueue(own);
    go(own, Api.wait);
  });
  const name = "API of %: 503, enqueueing of unknown outcome";
  steps.take(
    `${name}, the job is there`,
    place,
    unknown((_, own) => enqueue(own)),
    "enqueueUnknown",
  );
  steps.take(`${name}, no job`, place, unknown(notAtAll), "enqueueUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.take(`${name}, the job comes later`, place, unknown(later(Message.enqueue)), "enqueueUnknown");
}
