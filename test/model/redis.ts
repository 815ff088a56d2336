import { isListening } from "./api-states.ts";
import { balanceOf, type Credit, isPaid, spentIn } from "./postgres.ts";
import { Decision, Hold, Inbox, isAsking, Job, KeyRecord, type Search, type State } from "./state.ts";
import type { Steps, ModelConfig } from "./steps.ts";

/**
 * Redis: its scripts, each atomic, and the ways in which a message to it can fail. The rate window and the concurrency limit are
 * left out, because they only refuse.
 */

/** The kinds of messages: settle.lua with or without the end of a hold, admit.lua, or a job for the queue. */
export const Message = {
  balance: 1,
  drop: 2,
  answer: 3,
  failure: 4,
  free: 5,
  admit: 6,
  enqueue: 7,
  // The caller disconnected: the hold becomes a concurrency slot.
  slot: 8,
  // The calls of a search count as unpaid: after a reversal, or at the end of a search whose caller disconnected.
  reversed: 9,
  told: 10,
  left: 11,
} as const;

/** Without a key there is no record that they end. */
const endsInFailure = new Set<number>([Message.failure, Message.slot, Message.left]);

export interface Sent extends Credit {
  kind: number;
}

/**
 * settle.lua: stores the balance if it is newer, drops the hold or turns it into a concurrency slot, and changes the key's
 * record. It never makes a slot where there is no hold: the worker was faster.
 */
export function settleHold(config: ModelConfig, state: State, search: Search, sent: Sent): void {
  const { kind } = sent;
  storeBalance(config, state, sent);
  if (kind === Message.balance) return;
  if (kind === Message.reversed || kind === Message.left) countUnpaid(config, search);
  if (kind !== Message.slot || !config.design.keepsSlots) search.hold = Hold.none;
  else if (search.hold === Hold.priced) search.hold = Hold.slot;
  const { shared } = state;
  const isOwner = shared.recordOwner === search.index + 1 || !config.design.recordsHaveOwners;
  if (shared.record === KeyRecord.none || !isOwner) return;
  if (kind === Message.answer) shared.record = KeyRecord.answered;
  else if (kind === Message.free) shared.record = shared.recordOwner = 0;
  else if (endsInFailure.has(kind)) shared.record = KeyRecord.failed;
}

/** Counts them once per flight of calls. */
function countUnpaid({ design }: ModelConfig, search: Search): void {
  search.unpaid = design.countsOnce ? 1 : search.unpaid + 1;
}

/**
 * free-decided.lua: the holds of decided searches keep their concurrency slots and no mils, if the balance contains the
 * decisions.
 */
export function freeDecided({ shared, searches }: State, decided: number, version: number): void {
  if (shared.copy === 0 || shared.copyVersion < version) return;
  for (const search of searches)
    if (search.hold === Hold.priced && (decided & bitOf(search)) !== 0) search.hold = Hold.slot;
}

export const bitOf = ({ index }: Search): number => 1 << index;

/** The part of settle.lua that stores a balance and the spending by its version. */
export function storeBalance({ design }: ModelConfig, { shared }: State, { balance, version, spent }: Credit): void {
  const isNewer = shared.copy === 0 || version > shared.copyVersion || !design.storesNewerBalancesOnly;
  if (isNewer) {
    shared.copy = balance + 1;
    shared.copyVersion = version;
    if (design.bindsSpending) shared.copySpent = 0;
  }
  if (spent !== 0 && version >= shared.copyVersion) shared.copySpent = spent;
}

export type Admission = "held" | "completed" | "waiting" | "balance_missing" | "insufficient_credit" | "spending_limit";

/** admit.lua. Only repeats that already wait read the record of a failure. */
export function admit(config: ModelConfig, state: State, search: Search): Admission {
  const { shared } = state;
  const isKeyed = config.keyed[search.index] ?? false;
  if (isKeyed && shared.recordOwner !== search.index + 1) {
    if (shared.record === KeyRecord.answered) return "completed";
    if (shared.record === KeyRecord.running) return "waiting";
  }
  if (shared.copy === 0) return "balance_missing";
  const held = state.searches.filter(({ hold }) => hold === Hold.priced).length;
  if (shared.copy - 1 - held < 1) return "insufficient_credit";
  if (config.limit !== undefined) {
    if (shared.copySpent === 0) return "balance_missing";
    if (shared.copySpent - 1 + held + 1 > config.limit) return "spending_limit";
  }
  search.hold = Hold.priced;
  search.wasHeld = 1;
  if (isKeyed) {
    shared.record = KeyRecord.running;
    shared.recordOwner = search.index + 1;
  }
  return "held";
}

/**
 * How a decided search ends in Redis: its hold is dropped; under a key the record gets the answer or the failure, or is freed.
 */
export function endOf(isKeyed: boolean, search: Search, hasAnswer: boolean): number {
  if (!isKeyed) return Message.drop;
  if (hasAnswer) return Message.answer;
  return isPaid(search) ? Message.free : Message.failure;
}

/** Appends to the inbox. Only the first unread entry counts, and only while the API reads: others are dropped. */
export function append(search: Search, outcome: number): void {
  if (search.inbox === Inbox.none && isListening(search.api)) search.inbox = outcome;
}

/** A published message reaches the workers that run the search. */
export function tell(search: Search): void {
  for (const run of search.runs) if (isAsking(run)) run.isTold = 1;
}

export function enqueue(search: Search): void {
  if (search.job === Job.none) search.job = Job.waiting;
}

/**
 * Offers the sending of a settle.lua. It arrives. As a fault it is lost, arrives late (after its sender gave up, or on another
 * connection), or arrives twice. `then` is what its sender does next.
 */
export function send(
  steps: Steps,
  name: string,
  index: number,
  sent: Sent,
  then: (own: Search, next: State) => void,
): void {
  const { config, now } = steps;
  const arrive = (next: State, own: Search) => settleHold(config, next, own, sent);
  steps.offer(name, index, (next, own) => {
    arrive(next, own);
    then(own, next);
  });
  if (now.left.message === 0) return;
  steps.offer(`${name} [lost]`, index, (next, own) => then(own, next), "message");
  if (now.shared.lateTo !== 0) return;
  const late = (next: State, own: Search) => {
    putLate(next, own, sent);
    then(own, next);
  };
  steps.offer(`${name} [arrives late]`, index, late, "message");
  const twice = (next: State, own: Search) => {
    arrive(next, own);
    late(next, own);
  };
  steps.offer(`${name} [arrives twice]`, index, twice, "message");
}

export function putLate({ shared }: State, search: Search, sent: Sent): void {
  shared.lateTo = search.index + 1;
  shared.lateKind = sent.kind;
  shared.lateBalance = sent.balance;
  shared.lateVersion = sent.version;
  shared.lateSpent = sent.spent;
}

const lateNames = [
  "",
  "balance",
  "end of a hold",
  "answered key",
  "failure",
  "freed key",
  "admission",
  "job",
  "slot",
  "reversal",
  "disconnect for its worker",
  "unpaid calls",
];

/** The late message arrives. */
export function offerLateArrival(steps: Steps): void {
  const { config, now } = steps;
  const { lateTo, lateKind: kind, lateBalance: balance, lateVersion: version, lateSpent: spent } = now.shared;
  if (lateTo === 0) return;
  steps.offer(`a late message for % reaches Redis: ${lateNames[kind]}`, lateTo - 1, (next, own) => {
    if (kind === Message.admit) admit(config, next, own);
    else if (kind === Message.enqueue) enqueue(own);
    else if (kind === Message.told) tell(own);
    else settleHold(config, next, own, { kind, balance, version, spent });
    next.shared.lateTo = next.shared.lateKind = 0;
    next.shared.lateBalance = next.shared.lateVersion = next.shared.lateSpent = 0;
  });
}

/** Stores Postgres' current balance, without the spending. */
export const storeNow = (config: ModelConfig, state: State): void => storeBalance(config, state, balanceOf(state));

const openIn = ({ searches }: State) =>
  searches.filter(({ hold, decision }) => hold === Hold.priced && decision === Decision.none).length;

/** Whether the balance covers every open, undecided search. Admission promises that while Redis keeps its data. */
export const isCovered = (state: State): boolean => state.shared.balance >= openIn(state);

/** The same for the limit. */
export const isWithinLimit = (config: ModelConfig, state: State): boolean =>
  config.limit === undefined || spentIn(config, state) + openIn(state) <= config.limit;
