import { asBuilt, type Design } from "./design.ts";
import type { ModelConfig } from "./steps.ts";

/** Defects that the design could have. The model has to find each of them by the rule that it breaks. */
export interface DesignBug {
  name: string;
  /** The rule that is broken first. */
  rule: string;
  config: ModelConfig;
}

function bug(name: string, rule: string, changed: Partial<Design>, config: Partial<ModelConfig>): DesignBug {
  const given = { keyed: [false], balance: 1, warm: true, takeOversMax: 1, faults: {} };
  return { name, rule, config: { ...given, ...config, design: { ...asBuilt, ...changed } } };
}

const paid = "each 200 has a charge behind it that stands, its own or its key's";
const delivered = "each charge without a key that stands was delivered";
const covered = "what is admitted can be paid, unless Redis lost its memory";
const balanceAtRest = "Redis' copy is cold or Postgres' balance";
const oneAtATime = "one search at a time under a key, unless Redis lost its memory";
const holdAtRest = "no hold is left";
const repeat = { keyed: [true, true] };

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
    "the sweeper never checks organizations that were quiet",
    holdAtRest,
    { sweepsAllAtFirst: false },
    { faults: { restore: 1, longQuiet: 1 } },
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
    "no hold for what the key has paid",
    "a record in flight has a hold, by which the sweeper finds it",
    { holdsWhatIsPaid: false },
    { ...repeat, faults: { flush: 1 } },
  ),
  bug(
    "a record is freed by any request",
    oneAtATime,
    { recordsHaveOwners: false },
    { ...repeat, balance: 2, faults: { admissionUnknown: 1 } },
  ),
  bug("a delivery is never confirmed", paid, { confirms: false }, {}),
  bug("a process exits without its confirmations", paid, { exitConfirms: false }, { faults: { apiExit: 1 } }),
  bug("a 200 is sent however late it is", paid, { fences: false }, {}),
  bug(
    "the API's refund ends the hold of what was charged",
    "a repeat is not searched again while the first answer is being sent",
    { apiLeavesCharges: false },
    { ...repeat, balance: 2 },
  ),
  bug(
    "402 is answered from Redis alone, for lack of a top-up",
    "no caller is refused for credits by an old balance",
    { asksBeforeRefusing: false },
    { balance: 0, faults: { topUp: 1 } },
  ),
  bug(
    "402 is answered from Redis alone, for what a key has paid",
    "what a key has paid is not refused for credits",
    { asksBeforeRefusing: false },
    { ...repeat, faults: { flush: 1 } },
  ),
  bug("a worker reverses the charge of an earlier run", paid, { workerReverses: true }, { faults: { workerStall: 1 } }),
];
