import { asBuilt, type Design } from "./design.ts";
import type { ModelConfig } from "./steps.ts";

/** Bugs that the design could have. The model must find each by the rule that it breaks. */
export interface DesignBug {
  name: string;
  /** The rule that it breaks. */
  rule: string;
  config: ModelConfig;
}

/** Bugs that break this rule: by their names, what is changed in the design, and the states in which the model looks. */
function breaking(rule: string, named: Record<string, [changed: Partial<Design>, config: Partial<ModelConfig>]>) {
  const given = { keyed: [false], balance: 1, warm: true, takeOversMax: 1, pages: 1, faults: {} };
  return Object.entries(named).map(([name, [changed, config]]): DesignBug => {
    return { name, rule, config: { ...given, ...config, design: { ...asBuilt, ...changed } } };
  });
}

const paid = "each 200 has a standing charge, its own or its key's";
const delivered = "each charge without a key that stands was delivered";
const covered = "admitted searches can be paid for, unless Redis lost its data";
const balanceAtRest = "Redis has no copy of the balance, or Postgres' balance";
const holdAtRest = "no hold is left";
const repeat = { keyed: [true, true] };
const withinLimit = "charges that stand never exceed the limit";
const onALimit = { keyed: [false, false], balance: 2, limit: 1, isPunctual: true };

export const bugs: DesignBug[] = [
  ...breaking("a decided search stays as it was decided", {
    "every run decides its search again": [{ decidesOnce: false }, { balance: 2, faults: { workerCrash: 1 } }],
  }),
  ...breaking("a reversal reverses one charge that was made", {
    "a commit of unknown outcome is refunded blindly": [
      { asksAgainAfterUnknownCommit: false },
      { faults: { unknownCommit: 1 } },
    ],
  }),
  ...breaking("a key is charged once", {
    "only admission checks a key": [{ keyPaysOnce: false }, { ...repeat, balance: 2, faults: { flush: 1 } }],
  }),
  ...breaking(withinLimit, {
    "only admission checks a limit": [{ limitsCharges: false }, { ...onALimit, faults: { flush: 1 } }],
    "added credit makes room under a limit": [
      { grantsAreNoRoom: false },
      { ...onALimit, balance: 1, faults: { topUp: 1 } },
    ],
  }),
  ...breaking("Redis and Postgres agree on the spending of a balance version", {
    "spending that Redis has lost is not copied from Postgres": [
      { seedsSpending: false },
      { ...onALimit, faults: { flush: 1 } },
    ],
  }),
  ...breaking("admitted searches stay within the limit, unless Redis lost its data", {
    "spending starts at 0 after added credit": [{ seedsSpending: false }, { ...onALimit, faults: { topUp: 1 } }],
    "Redis keeps old spending beside a newer balance": [
      { bindsSpending: false },
      { ...onALimit, faults: { topUp: 1 } },
    ],
  }),
  ...breaking("no limit with room for a search refuses it", {
    "402 for a limit is decided by Redis alone": [
      { asksBeforeRefusing: false },
      { ...onALimit, faults: { disconnect: 1, message: 1 } },
    ],
    "402 for a limit counts a charge twice while its hold stands": [
      { freesDecidedHolds: false },
      { ...onALimit, balance: 3, limit: 2, warm: false },
    ],
  }),
  ...breaking("a charge under a key is never reversed", {
    "a charge under a key can be reversed": [{ keyedChargesStand: false }, { keyed: [true] }],
  }),
  ...breaking(delivered, {
    "the evidence of delivery is kept in Redis": [{ evidenceInPostgres: false }, { faults: { flush: 1 } }],
  }),
  ...breaking(paid, {
    "a reversal does not take the row of undelivered": [
      { reversalTakesTheRow: false, workerReverses: true },
      { faults: { workerStall: 1 } },
    ],
    "the sweeper reverses what it finds charged": [
      { sweeperLeavesCharges: false },
      { faults: { workerStall: 1, message: 1 } },
    ],
    "a delivery is never confirmed": [{ confirms: false }, {}],
    "a process exits without its confirmations": [{ exitConfirms: false }, { faults: { apiExit: 1 } }],
    "a 200 is sent even if it is late": [{ fences: false }, {}],
    "a cancellation reverses an answer that is being sent": [{ ignoresLateCancels: false }, { faults: { cancel: 1 } }],
    "a charge is final with the last byte of an answer that is usable before": [
      { firstCopyIsFinal: false },
      { faults: { disconnect: 1 } },
    ],
    "a reversed answer is sent anyway": [{ reversedIsUnsent: false }, { faults: { slowReader: 1 } }],
    "a worker reverses the charge of an earlier run": [{ workerReverses: true }, { faults: { workerStall: 1 } }],
  }),
  ...breaking(holdAtRest, {
    "no sweeper": [{ sweeps: false }, { faults: { apiCrash: 1 } }],
  }),
  ...breaking(covered, {
    "an older balance replaces a newer copy": [
      { storesNewerBalancesOnly: false },
      { keyed: [false, false], warm: false },
    ],
  }),
  ...breaking(balanceAtRest, {
    "copies of the balance are never refreshed": [{ reconcilesBalances: false }, { faults: { message: 1 } }],
  }),
  ...breaking("a search under a key has its record, unless Redis lost its data", {
    "any request frees a record": [
      { recordsHaveOwners: false },
      { ...repeat, balance: 2, faults: { engineFailure: 1, message: 1 } },
    ],
  }),
  ...breaking("no caller is refused for lack of credit by an old balance", {
    "402 is decided by Redis alone, before it knows of a top-up": [
      { asksBeforeRefusing: false },
      { balance: 0, faults: { topUp: 1 } },
    ],
  }),
  ...breaking("no repeat of a key that has paid is refused for lack of credit", {
    "a key is looked up in Redis alone, and its repeat is refused for lack of credit": [
      { looksUpFirst: false },
      { ...repeat, faults: { flush: 1 } },
    ],
  }),
  ...breaking("no caller is refused because of the hold of a decided search", {
    "402 counts a charge twice while its hold stands": [
      { freesDecidedHolds: false },
      { keyed: [false, false], balance: 2, warm: false },
    ],
    "402 overlooks that a hold was dropped meanwhile": [
      { noticesDroppedHolds: false },
      { keyed: [false, false], balance: 2, warm: false },
    ],
  }),
  ...breaking("no worker gets a repeat of a key that has paid", {
    "answers under keys are stored in Redis alone": [
      { looksUpFirst: false },
      { ...repeat, balance: 2, faults: { flush: 1 } },
    ],
  }),
  ...breaking("Postgres has the answer of every key that has paid", {
    "the answer is stored after the charge": [{ storesWithTheCharge: false }, { keyed: [true] }],
  }),
  ...breaking("callers under one key get the same bytes", {
    "a second run under a key sends its own answer": [
      { answersFromPostgres: false },
      { keyed: [true], faults: { workerCrash: 1 } },
    ],
  }),
  ...breaking("Postgres has entries only for searches that had a hold", {
    "an admission of unknown outcome is always refunded": [
      { refundsHoldsOnly: false },
      { faults: { admissionUnknown: 1 } },
    ],
  }),
  ...breaking("a search whose provider call runs has its concurrency slot", {
    "a disconnect ends the hold during a provider call": [{ keepsSlots: false }, { faults: { disconnect: 1 } }],
    "a cancellation under a key ends the hold during a provider call": [
      { keepsSlots: false },
      { keyed: [true], faults: { keyedCancel: 1 } },
    ],
  }),
  ...breaking("no page is requested once the worker knows that the caller has disconnected", {
    "a worker goes on although its caller has disconnected": [
      { stopsWhenTold: false },
      { pages: 2, faults: { disconnect: 1 } },
    ],
  }),
  ...breaking("the calls of a search count as unpaid once", {
    "calls count as unpaid once per message": [{ countsOnce: false }, { faults: { disconnect: 1, message: 1 } }],
  }),
];
