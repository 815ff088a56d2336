import { Api } from "./api-states.ts";
import { spentIn } from "./postgres.ts";
import { isCovered, isWithinLimit } from "./redis.ts";
import {
  Caller,
  Clock,
  Decision,
  type Fault,
  Hold,
  isAsking,
  Job,
  KeyRecord,
  Reversed,
  type Search,
  type State,
} from "./state.ts";
import type { ModelConfig } from "./steps.ts";

/** The invariants of docs/ledger.md and of the design, each with the sentence that reports its violation. */

type Rule = (state: State, config: ModelConfig) => boolean;

const isCharged = ({ decision }: Search) => decision === Decision.charge;
const stands = (search: Search) => isCharged(search) && search.reversed === Reversed.no;
const isKeyed = (config: ModelConfig, { index }: Search) => config.keyed[index] ?? false;
const standingUnderKey = (state: State, config: ModelConfig) =>
  state.searches.filter((search) => isKeyed(config, search) && stands(search)).length;

/** In every state. */
const always: Record<string, Rule> = {
  "a decided search stays as it was decided": ({ shared }) => shared.decidedTwice === 0,
  "a balance is the sum of its entries, and never below 0": ({ shared, searches }) => {
    let sum = shared.granted;
    for (const search of searches) {
      if (isCharged(search)) sum -= 1;
      if (search.reversed !== Reversed.no) sum += 1;
    }
    // A byte does not go below 0: a balance that would is far above all that was granted.
    return shared.balance === sum && shared.balance <= shared.granted;
  },
  "a reversal reverses one charge that was made": ({ searches }) =>
    searches.every((search) => search.reversed === Reversed.no || isCharged(search)),
  "a charge under a key is never reversed": ({ searches }, config) =>
    searches.every((search) => search.reversed === Reversed.no || !isKeyed(config, search)),
  "a row in undelivered belongs to a charge without a key that stands": ({ searches }, config) =>
    searches.every((search) => search.undelivered === 0 || (stands(search) && !isKeyed(config, search))),
  "a key is charged once": (state, config) => standingUnderKey(state, config) <= 1,
  "Postgres has the answer of every key that has paid": ({ shared }) => shared.paidBy === 0 || shared.stored === 1,
  "callers under one key get the same bytes": ({ searches }) =>
    !searches.some(({ caller }) => caller === Caller.deliveredOther),
  "no worker gets a repeat of a key that has paid": ({ searches }) =>
    !searches.some(({ isRepeat, job }) => isRepeat === 1 && job !== Job.none),
  "Postgres has entries only for searches that had a hold": ({ searches }) =>
    searches.every(({ decision, wasHeld }) => decision === Decision.none || wasHeld === 1),
  "a search whose provider call runs has its concurrency slot": (state, config) =>
    state.searches.every(
      (search) => !isAskedFor(search) || search.hold !== Hold.none || mayLackSlot(state, search, config),
    ),
  "the calls of a search count as unpaid once": ({ searches }) => searches.every(({ unpaid }) => unpaid <= 1),
  "a recorded answer is paid for": (state, config) =>
    state.shared.record !== KeyRecord.answered || standingUnderKey(state, config) > 0,
  "a running record has a hold, by which the sweeper finds it": ({ shared, searches }) =>
    shared.record !== KeyRecord.running || searches[shared.recordOwner - 1]?.hold !== Hold.none,
  "Redis' copy is never newer than Postgres, nor another balance of the same version": ({ shared }) =>
    shared.copy === 0 ||
    shared.copyVersion < shared.version ||
    (shared.copyVersion === shared.version && shared.copy === shared.balance + 1),
  "admitted searches can be paid for, unless Redis lost its data": (state) =>
    state.shared.lost === 1 || isCovered(state),
  "charges that stand never exceed the limit": ({ searches }, { limit }) =>
    limit === undefined || searches.filter(stands).length <= limit,
  "the charges that stand count against the limit": (state, config) =>
    config.limit === undefined || spentIn(config, state) === state.searches.filter(stands).length,
  "Redis and Postgres agree on the spending of a balance version": ({ shared, searches }) =>
    shared.copySpent === 0 ||
    shared.copyVersion < shared.version ||
    shared.copySpent === searches.filter(stands).length + 1,
  "admitted searches stay within the limit, unless Redis lost its data": (state, config) =>
    state.shared.lost === 1 || isWithinLimit(config, state),
  "a search under a key has its record, unless Redis lost its data": ({ shared, searches }, config) =>
    shared.lost === 1 ||
    searches.every(
      (search) =>
        !isKeyed(config, search) ||
        search.hold === Hold.none ||
        search.decision !== Decision.none ||
        (shared.record === KeyRecord.running && shared.recordOwner === search.index + 1),
    ),
  "one search at a time under a key beside cancelled ones, unless Redis lost its data": (
    { shared, searches },
    config,
  ) =>
    shared.lost === 1 ||
    searches.filter(
      ({ hold, decision, index }) =>
        hold !== Hold.none && decision !== Decision.callerDisconnected && config.keyed[index],
    ).length <= 1,
};

/** Whether the run that has the job waits for the provider. A worker that lost its job counts as dead. */
const isAskedFor = ({ job, runs }: Search) => runs.some((run) => isAsking(run) && job === Job.active + run.index);

/**
 * A slot may be missing if Redis lost it, after the deadline, if the search has ended and its job is repeated anyway, and if the
 * API gave it up because it could not know that the job exists.
 */
const mayLackSlot = ({ shared, left }: State, { clock, decision }: Search, { faults }: ModelConfig) =>
  shared.lost === 1 ||
  clock >= Clock.deadline ||
  (decision !== Decision.none && decision !== Decision.callerDisconnected) ||
  isUsed(left, faults, ["workerCrash", "workerStall", "enqueueUnknown"]);

const isUsed = (left: State["left"], faults: ModelConfig["faults"], some: readonly Fault[]) =>
  some.some((fault) => left[fault] < (faults[fault] ?? 0));

/** In states without a step other than a fault. */
const atRest: Record<string, Rule> = {
  "every caller is answered or disconnected, and no API has anything left to do": ({ searches }) =>
    searches.every(
      ({ caller, api }) =>
        caller !== Caller.unsent && caller !== Caller.waits && (api === Api.done || api === Api.idle),
    ),
  "no hold is left": ({ searches }) => searches.every(({ hold }) => hold === Hold.none),
  "no job and no run is left": ({ searches }) =>
    searches.every(({ job, runs }) => job === Job.none && runs.every(({ at }) => at === 0)),
  "no record is left running": ({ shared }) => shared.record !== KeyRecord.running,
  "no row in undelivered is left": ({ searches }) => searches.every(({ undelivered }) => undelivered === 0),
  "each 200 has a standing charge, its own or its key's": (state, config) =>
    state.searches.every((search) => {
      if (search.caller !== Caller.delivered) return true;
      if (isKeyed(config, search)) return standingUnderKey(state, config) > 0;
      return stands(search) || (isCharged(search) && search.inDoubt === 1);
    }),
  "each charge without a key that stands was delivered": ({ searches }, config) =>
    searches.every((search) => isKeyed(config, search) || !stands(search) || search.caller === Caller.delivered),
  "a charge under a key is owed by the key": (state, config) =>
    standingUnderKey(state, config) === 0 || state.shared.paidBy !== 0,
  "unpaid calls are counted, unless their count was lost": ({ shared, left, searches }, { faults }) =>
    shared.lost === 1 ||
    isUsed(left, faults, ["message", "apiCrash", "postgresAway", "workerCrash", "workerStall", "workerGivesUp"]) ||
    searches.every(
      ({ decision, reversed, unpaid }) =>
        (decision !== Decision.callerDisconnected && reversed !== Reversed.callerDisconnected) || unpaid === 1,
    ),
  "Redis has no copy of the balance, or Postgres' balance": ({ shared }) =>
    shared.copy === 0 || (shared.copyVersion === shared.version && shared.copy === shared.balance + 1),
};

const alwaysList = Object.entries(always);
const atRestList = Object.entries(atRest);

/** The rules that this state breaks. */
export function brokenIn(state: State, config: ModelConfig, isAtRest: boolean): string[] {
  let broken: string[] | undefined;
  for (const [rule, holds] of isAtRest ? atRestList : alwaysList) if (!holds(state, config)) (broken ??= []).push(rule);
  return broken ?? none;
}

const none: string[] = [];

/** Checked for a whole model instead of single states. */
export const restIsReachable = "every state can come to rest without another fault";
