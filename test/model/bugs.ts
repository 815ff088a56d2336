import { asBuilt, type Design } from "./design.ts";
import type { ModelConfig } from "./steps.ts";

/** Bugs that the design could have. The model must find each by the rule that it breaks. */
export interface DesignBug {
  name: string;
  /** The rule that it breaks. */
  rule: string;
  config: ModelConfig;
}

function bug(name: string, rule: string, changed: Partial<Design>, config: Partial<ModelConfig>): DesignBug {
  const given = { keyed: [false], balance: 1, warm: true, takeOversMax: 1, pages: 1, faults: {} };
  return { name, rule, config: { ...given, ...config, design: { ...asBuilt, ...changed } } };
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
  bug(
    "every run decides its search again",
    "a decided search stays as it was decided",
    { decidesOnce: false },
    { balance: 2, faults: { workerCrash: 1 } },
  ),
  bug(
    "a commit of unknown outcome is refunded blindly",
    "a reversal reverses one charge that was made",
    { asksAgainAfterUnknownCommit: false },
    { faults: { unknownCommit: 1 } },
  ),
  bug(
    "only admission checks a key",
    "a key is charged once",
    { keyPaysOnce: false },
    { ...repeat, balance: 2, faults: { flush: 1 } },
  ),
  bug("only admission checks a limit", withinLimit, { limitsCharges: false }, { ...onALimit, faults: { flush: 1 } }),
  bug(
    "added credit makes room under a limit",
    withinLimit,
    { grantsAreNoRoom: false },
    { ...onALimit, balance: 1, faults: { topUp: 1 } },
  ),
  bug(
    "spending that Redis has lost is not copied from Postgres",
    "Redis and Postgres agree on the spending of a balance version",
    { seedsSpending: false },
    { ...onALimit, faults: { flush: 1 } },
  ),
  bug(
    "spending starts at 0 after added credit",
    "admitted searches stay within the limit, unless Redis lost its data",
    { seedsSpending: false },
    { ...onALimit, faults: { topUp: 1 } },
  ),
  bug(
    "Redis keeps old spending beside a newer balance",
    "admitted searches stay within the limit, unless Redis lost its data",
    { bindsSpending: false },
    { ...onALimit, faults: { topUp: 1 } },
  ),
  bug(
    "402 for a limit is decided by Redis alone",
    "no limit with room for a search refuses it",
    { asksBeforeRefusing: false },
    { ...onALimit, faults: { disconnect: 1, message: 1 } },
  ),
  bug(
    "402 for a limit counts a charge twice while its hold stands",
    "no limit with room for a search refuses it",
    { freesDecidedHolds: false },
    { ...onALimit, balance: 3, limit: 2, warm: false },
  ),
  bug(
    "a charge under a key can be reversed",
    "a charge under a key is never reversed",
    { keyedChargesStand: false },
    { keyed: [true] },
  ),
  bug("the evidence of delivery is kept in Redis", delivered, { evidenceInPostgres: false }, { faults: { flush: 1 } }),
  bug(
    "a reversal does not take the row of undelivered",
    paid,
    { reversalTakesTheRow: false, workerReverses: true },
    { faults: { workerStall: 1 } },
  ),
  bug("no sweeper", holdAtRest, { sweeps: false }, { faults: { apiCrash: 1 } }),
  bug(
    "the sweeper reverses what it finds charged",
    paid,
    { sweeperLeavesCharges: false },
    { faults: { workerStall: 1, message: 1 } },
  ),
  bug(
    "an older balance replaces a newer copy",
    covered,
    { storesNewerBalancesOnly: false },
    { keyed: [false, false], warm: false },
  ),
  bug(
    "copies of the balance are never refreshed",
    balanceAtRest,
    { reconcilesBalances: false },
    { faults: { message: 1 } },
  ),
  bug(
    "any request frees a record",
    "a search under a key has its record, unless Redis lost its data",
    { recordsHaveOwners: false },
    { ...repeat, balance: 2, faults: { engineFailure: 1, message: 1 } },
  ),
  bug("a delivery is never confirmed", paid, { confirms: false }, {}),
  bug("a process exits without its confirmations", paid, { exitConfirms: false }, { faults: { apiExit: 1 } }),
  bug("a 200 is sent even if it is late", paid, { fences: false }, {}),
  bug(
    "402 is decided by Redis alone, before it knows of a top-up",
    "no caller is refused for lack of credit by an old balance",
    { asksBeforeRefusing: false },
    { balance: 0, faults: { topUp: 1 } },
  ),
  bug(
    "a key is looked up in Redis alone, and its repeat is refused for lack of credit",
    "no repeat of a key that has paid is refused for lack of credit",
    { looksUpFirst: false },
    { ...repeat, faults: { flush: 1 } },
  ),
  bug(
    "402 counts a charge twice while its hold stands",
    "no caller is refused because of the hold of a decided search",
    { freesDecidedHolds: false },
    { keyed: [false, false], balance: 2, warm: false },
  ),
  bug(
    "402 overlooks that a hold was dropped meanwhile",
    "no caller is refused because of the hold of a decided search",
    { noticesDroppedHolds: false },
    { keyed: [false, false], balance: 2, warm: false },
  ),
  bug(
    "answers under keys are stored in Redis alone",
    "no worker gets a repeat of a key that has paid",
    { looksUpFirst: false },
    { ...repeat, balance: 2, faults: { flush: 1 } },
  ),
  bug(
    "the answer is stored after the charge",
    "Postgres has the answer of every key that has paid",
    { storesWithTheCharge: false },
    { keyed: [true] },
  ),
  bug(
    "a second run under a key sends its own answer",
    "callers under one key get the same bytes",
    { answersFromPostgres: false },
    { keyed: [true], faults: { workerCrash: 1 } },
  ),
  bug(
    "an admission of unknown outcome is always refunded",
    "Postgres has entries only for searches that had a hold",
    { refundsHoldsOnly: false },
    { faults: { admissionUnknown: 1 } },
  ),
  bug(
    "a disconnect ends the hold during a provider call",
    "a search whose provider call runs has its concurrency slot",
    { keepsSlots: false },
    { faults: { disconnect: 1 } },
  ),
  bug(
    "a cancellation under a key ends the hold during a provider call",
    "a search whose provider call runs has its concurrency slot",
    { keepsSlots: false },
    { keyed: [true], faults: { keyedCancel: 1 } },
  ),
  bug(
    "a worker goes on although its caller has disconnected",
    "no page is requested once the worker knows that the caller has disconnected",
    { stopsWhenTold: false },
    { pages: 2, faults: { disconnect: 1 } },
  ),
  bug(
    "calls count as unpaid once per message",
    "the calls of a search count as unpaid once",
    { countsOnce: false },
    { faults: { disconnect: 1, message: 1 } },
  ),
  bug(
    "a cancellation reverses an answer that is being sent",
    paid,
    { ignoresLateCancels: false },
    { faults: { cancel: 1 } },
  ),
  bug(
    "a charge is final with the last byte of an answer that is usable before",
    paid,
    { firstCopyIsFinal: false },
    { faults: { disconnect: 1 } },
  ),
  bug("a reversed answer is sent anyway", paid, { reversedIsUnsent: false }, { faults: { slowReader: 1 } }),
  bug("a worker reverses the charge of an earlier run", paid, { workerReverses: true }, { faults: { workerStall: 1 } }),
];
