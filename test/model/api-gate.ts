import { Api, carriedBy, carry, go, refuse } from "./api-states.ts";
import { creditOf, spentIn } from "./postgres.ts";
import { admit, bitOf, enqueue, freeDecided, Message, putLate, send } from "./redis.ts";
import { Caller, Clock, Decision, Hold, KeyRecord, type Search, type State } from "./state.ts";
import { type Change, noSearch, type Steps } from "./steps.ts";

/** The API before a search is in the queue: admission, reads of Postgres, the wait for the first request, enqueueing. */

/** A caller sends the next search. Equal searches are interchangeable, so a fixed order loses nothing. */
export function offerSending(steps: Steps): void {
  const unsent = steps.now.searches.find(({ caller }) => caller === Caller.unsent);
  if (!unsent) return;
  steps.offer("a caller sends %", unsent.index, ({ shared }, own) => {
    own.caller = Caller.waits;
    own.api = gateOf(steps, own.index);
    if (steps.isKeyed(own.index) && shared.paidBy !== 0) own.isRepeat = 1;
  });
}

const gateOf = (steps: Steps, index: number) =>
  steps.isKeyed(index) && steps.config.design.looksUpFirst ? Api.lookUp : Api.admit;

export function offerGate(steps: Steps, own: Search): void {
  const { index, api } = own;
  switch (api) {
    case Api.admit:
      return offerAdmission(steps, index, own.clock);
    case Api.seedRead:
      steps.offer("API of %: reads the balance in Postgres", index, (next, search) => {
        const { spent, ...balance } = creditOf(steps.config, next);
        carry(search, Api.seedWrite, {
          ...balance,
          spent: steps.config.design.seedsSpending ? spent : Math.min(spent, 1),
        });
      });
      return offerAway(steps, index);
    case Api.seedWrite:
      return offerSeed(steps, own);
    case Api.listHolds:
    case Api.askBalance:
    case Api.freeHolds:
      return offerCreditCheck(steps, own);
    case Api.lookUp:
      return offerLookUp(steps, index);
    case Api.keyWait:
      return offerKeyWait(steps, index, own);
    case Api.enqueue:
      return offerEnqueue(steps, index);
    case Api.checkHold:
      return steps.offer("API of %: asks Redis whether there is a hold", index, (_, search) => {
        go(search, search.hold === Hold.none && steps.config.design.refundsHoldsOnly ? Api.done : Api.undo);
        return search.hold === Hold.none ? "there is none" : "there is one";
      });
  }
}

function offerAdmission(steps: Steps, index: number, clock: number): void {
  if (clock >= Clock.deadline) {
    steps.offer("API of %: 504, the deadline passed before the gate", index, (_, own) => refuse(own));
    return;
  }
  steps.offer("API of %: admit.lua", index, (next, own) => pass(steps, next, own));
  const ran: Change = (next, own) => admit(steps.config, next, own);
  const name = "API of %: 503, no reply from admit.lua";
  const unknownTo = unknown(Api.checkHold);
  steps.offer(`${name}, which ran`, index, unknownTo(ran), "admissionUnknown");
  steps.offer(`${name}, which never ran`, index, unknownTo(notAtAll), "admissionUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.offer(`${name}, which runs later`, index, unknownTo(later(Message.admit)), "admissionUnknown");
}

/** The caller gets its 503 while the API undoes what may have happened. */
const unknown =
  (undo: number) =>
  (change: Change): Change =>
  (next, own) => {
    change(next, own);
    refuse(own);
    go(own, undo);
  };
const notAtAll: Change = () => undefined;
const later =
  (kind: number): Change =>
  (next, own) =>
    putLate(next, own, { kind, balance: 0, version: 0, spent: 0 });

function pass(steps: Steps, next: State, own: Search): string {
  const admission = admit(steps.config, next, own);
  if (admission === "held") go(own, Api.enqueue);
  else if (admission === "completed") go(own, answeredOf(steps));
  else if (admission === "waiting") go(own, Api.keyWait);
  else if (admission === "balance_missing") go(own, Api.seedRead);
  else {
    const shown = {
      balance: 0,
      version: next.shared.copyVersion,
      spent: admission === "spending_limit" ? next.shared.copySpent : 0,
    };
    const held = steps.config.design.freesDecidedHolds ? heldIn(next) : 0;
    carry(own, checkOf(held), shown);
    if (!steps.config.design.asksBeforeRefusing) return refuseForPrice(steps, next, own);
    own.seenHolds = held;
  }
  return admission;
}

/** The holds with mils in Redis. */
const heldIn = ({ searches }: State) =>
  searches.reduce((held, search) => (search.hold === Hold.priced ? held | bitOf(search) : held), 0);

/** If no other search has a hold, the API asks only for the balance. */
const checkOf = (held: number) => (held === 0 ? Api.askBalance : Api.listHolds);

/** Before a 402 the API asks Postgres for the balance and the spending, and for decided holds. */
function offerCreditCheck(steps: Steps, own: Search): void {
  const { index, api, carriedVersion, seenHolds } = own;
  if (api === Api.listHolds) {
    steps.offer("API of %: lists the holds with mils in Redis", index, (next, search) => {
      const held = heldIn(next);
      if ((seenHolds & ~held) !== 0 && steps.config.design.noticesDroppedHolds) {
        go(search, Api.admit);
        return "one is gone";
      }
      carry(search, Api.askBalance, carriedBy(own));
      search.seenHolds = held;
      return "";
    });
  } else if (api === Api.askBalance) {
    steps.offer("API of %: asks Postgres for a newer balance and for decided holds", index, askPostgres(steps));
    offerAway(steps, index);
  } else
    steps.offer("API of %: frees the mils of decided holds", index, (next, search) => {
      freeDecided(next, seenHolds, carriedVersion);
      go(search, Api.admit);
    });
}

const askPostgres =
  (steps: Steps): Change =>
  (next, search) => {
    const credit = creditOf(steps.config, next);
    const hasMore =
      search.carriedSpent > 0 ? credit.spent < search.carriedSpent : credit.version > search.carriedVersion;
    const isDecided = ({ decision }: Search) => decision !== Decision.none;
    const decided = next.searches.filter((other) => isDecided(other) && (search.seenHolds & bitOf(other)) !== 0);
    if (!hasMore && decided.length === 0) return refuseForPrice(steps, next, search);
    carry(search, Api.seedWrite, credit);
    for (const other of decided) search.seenHolds |= bitOf(other);
    return decided.length > 0 ? "a hold is decided" : "there is more";
  };

/** 402. Whether it is right depends on Postgres at this moment. */
function refuseForPrice(steps: Steps, state: State, own: Search): string {
  const { shared, searches } = state;
  const { limit = 0 } = steps.config;
  const isOpen = (other: Search) => other.hold === Hold.priced || (own.seenHolds & bitOf(other)) !== 0;
  const open = searches.filter((other) => isOpen(other) && other.decision === Decision.none);
  if (own.isRepeat === 1) steps.breaks("no repeat of a key that has paid is refused for lack of credit");
  else if (own.carriedSpent > 0) {
    if (spentIn(steps.config, state) + open.length < limit) steps.breaks("no limit with room for a search refuses it");
  } else if (shared.version > own.carriedVersion)
    steps.breaks("no caller is refused for lack of credit by an old balance");
  else if (shared.balance > open.length) steps.breaks("no caller is refused because of the hold of a decided search");
  refuse(own);
  return "402";
}

/** Postgres is unreachable: 503, and nothing is held. */
function offerAway(steps: Steps, index: number): void {
  steps.offer("API of %: 503, Postgres is unreachable", index, (_, own) => refuse(own), "postgresAway");
}

function offerSeed(steps: Steps, search: Search): void {
  const { index, carriedVersion: version, seenHolds } = search;
  const sent = { kind: Message.balance, ...carriedBy(search) };
  send(steps, "API of %: stores the balance in Redis", index, sent, (own) => {
    if (seenHolds === 0) return go(own, Api.admit);
    carry(own, Api.freeHolds, { balance: 0, version, spent: 0 });
    own.seenHolds = seenHolds;
  });
}

/** Each search with a key is looked up in Postgres first. Admission then only reads the rate window. */
function offerLookUp(steps: Steps, index: number): void {
  steps.offer("API of %: looks its key up in Postgres", index, ({ shared }, own) => {
    go(own, shared.paidBy === 0 ? Api.admit : Api.deliver);
    return shared.paidBy === 0 ? "it has not paid" : "its answer";
  });
  offerAway(steps, index);
}

const answeredOf = ({ config }: Steps) => (config.design.looksUpFirst ? Api.lookUp : Api.deliver);

/** A repeat whose first request still runs. Waiting repeats share its failure; then, or after a flush, the key is free. */
function offerKeyWait(steps: Steps, index: number, own: Search): void {
  const { record } = steps.now.shared;
  if (record === KeyRecord.answered)
    steps.offer("API of %: the first was answered", index, (_, search) => go(search, answeredOf(steps)));
  if (record === KeyRecord.failed)
    steps.offer("API of %: shares the failure of the first", index, (_, search) => refuse(search));
  if (record === KeyRecord.none)
    steps.offer("API of %: the record was removed, tries again", index, (_, search) =>
      go(search, gateOf(steps, index)),
    );
  if (own.clock >= Clock.deadline || own.caller === Caller.disconnected)
    steps.offer("API of %: stops waiting for the first", index, (_, search) => refuse(search));
}

/** A key's record expires a moment after the end of its search. */
export function offerForgetting(steps: Steps): void {
  const { record } = steps.now.shared;
  if (record !== KeyRecord.failed && record !== KeyRecord.answered) return;
  steps.offer("the record of the key expires in Redis", noSearch, ({ shared }) => {
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
    unknown(Api.undo)((_, own) => enqueue(own)),
    "enqueueUnknown",
  );
  steps.offer(`${name}, no job`, index, unknown(Api.undo)(notAtAll), "enqueueUnknown");
  if (steps.now.shared.lateTo === 0)
    steps.offer(`${name}, the job comes later`, index, unknown(Api.undo)(later(Message.enqueue)), "enqueueUnknown");
}
