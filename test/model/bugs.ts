import { asBuilt, type Design } from "./design.ts";
import type { ModelConfig } from "./steps.ts";

/** Defects that the design could have. The model has to find each of them by the rule that it breaks. */
export interface DesignBug {
  name: string;
  /** A rule that it breaks, with the shortest trace to that. */
  rule: string;
  config: ModelConfig;
}

function bug(name: string, rule: string, changed: Partial<Design>, config: Partial<ModelConfig>): DesignBug {
  const given = { keyed: [false], balance: 1, warm: true, takeOversMax: 1, pages: 1, faults: {} };
  return { name, rule, config: { ...given, ...config, design: { ...asBuilt, ...changed } } };
}

const paid = "each 200 has a charge behind it that stands, its own or its key's";
const delivered = "each charge without a key that stands was delivered";
const covered = "what is admitted can be paid, unless Redis lost its memory";
const balanceAtRest = "Redis' copy is cold or Postgres' balance";
const holdAtRest = "no hold is left";
const repeat = { keyed: [true, true] };
const withinLimit = "charges that stand never exceed the limit";
const onALimit = { keyed: [false, false], balance: 2, limit: 1, isPunctual: true };

export const bugs: DesignBug[] = [
  bug(
    "a search is decided again by every run",
    "a decided search stays as it was decided",
    { decidesOnce: false },
    { balance: 2, faults: { workerCrash: 1 } },
  ),
  bug(
    "a commit of unknown outcome is refunded blindly",
    "a reversal gives back one charge that was made",
    { asksAgainAfterUnknownCommit: false },
    { faults: { unknownCommit: 1 } },
  ),
  bug(
    "a key is checked by admission only",
    "a key is charged once",
    { keyPaysOnce: false },
    { ...repeat, balance: 2, faults: { flush: 1 } },
  ),
  bug(
    "a limit is checked by admission only",
    withinLimit,
    { limitsCharges: false },
    { ...onALimit, faults: { flush: 1 } },
  ),
  bug(
    "added credit makes room under a limit",
    withinLimit,
    { grantsAreNoRoom: false },
    { ...onALimit, balance: 1, faults: { topUp: 1 } },
  ),
  bug(
    "what was spent is not copied from Postgres once Redis has lost it",
    "Redis counts what Postgres counted with that balance",
    { seedsSpending: false },
    { ...onALimit, faults: { flush: 1 } },
  ),
  bug(
    "what was spent begins at nothing after added credit",
    "what is admitted keeps the limit, unless Redis lost its memory",
    { seedsSpending: false },
    { ...onALimit, faults: { topUp: 1 } },
  ),
  bug(
    "what was spent is kept in Redis beside a newer balance",
    "what is admitted keeps the limit, unless Redis lost its memory",
    { bindsSpending: false },
    { ...onALimit, faults: { topUp: 1 } },
  ),
  bug(
    "402 by a limit is answered from Redis alone",
    "no caller is refused by a limit that leaves room for its search",
    { asksBeforeRefusing: false },
    { ...onALimit, faults: { disconnect: 1, message: 1 } },
  ),
  bug(
    "402 by a limit counts a charge twice whose hold still stands",
    "no caller is refused by a limit that leaves room for its search",
    { freesDecidedHolds: false },
    { ...onALimit, balance: 3, limit: 2, warm: false },
  ),
  bug(
    "a charge under a key is reversed like any other",
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
    "a copy of the balance is replaced by an older one",
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
    "a record is freed by any request",
    "a search under a key has its record, unless Redis lost its memory",
    { recordsHaveOwners: false },
    { ...repeat, balance: 2, faults: { engineFailure: 1, message: 1 } },
  ),
  bug("a delivery is never confirmed", paid, { confirms: false }, {}),
  bug("a process exits without its confirmations", paid, { exitConfirms: false }, { faults: { apiExit: 1 } }),
  bug("a 200 is sent however late it is", paid, { fences: false }, {}),
  bug(
    "402 is answered from Redis alone, for lack of a top-up",
    "no caller is refused for credits by an old balance",
    { asksBeforeRefusing: false },
    { balance: 0, faults: { topUp: 1 } },
  ),
  bug(
    "a key is looked up in Redis alone, and its repeat is refused for credits",
    "what a key has paid is not refused for credits",
    { looksUpFirst: false },
    { ...repeat, faults: { flush: 1 } },
  ),
  bug(
    "402 counts a charge twice whose hold still stands",
    "no caller is refused for credits that only a decided search holds",
    { freesDecidedHolds: false },
    { keyed: [false, false], balance: 2, warm: false },
  ),
  bug(
    "402 overlooks that a hold was dropped meanwhile",
    "no caller is refused for credits that only a decided search holds",
    { noticesDroppedHolds: false },
    { keyed: [false, false], balance: 2, warm: false },
  ),
  bug(
    "answers under keys are kept in Redis alone",
    "a repeat of a key that has paid is never given to a worker",
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
    "a second run under a key answers with what it has found itself",
    "callers under one key get the same bytes",
    { answersFromPostgres: false },
    { keyed: [true], faults: { workerCrash: 1 } },
  ),
  bug(
    "an admission of unknown outcome is refunded in any case",
    "Postgres has entries only for searches that had a hold",
    { refundsHoldsOnly: false },
    { faults: { admissionUnknown: 1 } },
  ),
  bug(
    "a disconnect ends the hold while the provider is asked",
    "a search that is asked for at the provider has its concurrency slot",
    { keepsSlots: false },
    { faults: { disconnect: 1 } },
  ),
  bug(
    "a worker goes on although its caller is gone",
    "no page is asked for once the worker knows that the caller is gone",
    { stopsWhenTold: false },
    { pages: 2, faults: { disconnect: 1 } },
  ),
  bug(
    "calls count as unpaid with every message",
    "the calls of a search count as unpaid once",
    { countsOnce: false },
    { faults: { disconnect: 1, message: 1 } },
  ),
  bug(
    "an answer on its way is given back because its caller cancels",
    paid,
    { ignoresLateCancels: false },
    { faults: { cancel: 1 } },
  ),
  bug(
    "an answer is final with its last byte, and usable before",
    paid,
    { firstCopyIsFinal: false },
    { faults: { disconnect: 1 } },
  ),
  bug("a reversed answer is sent all the same", paid, { reversedIsUnsent: false }, { faults: { slowReader: 1 } }),
  bug("a worker reverses the charge of an earlier run", paid, { workerReverses: true }, { faults: { workerStall: 1 } }),
];
