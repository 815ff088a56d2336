/** The rules of the design that can be broken one by one: a planted bug turns one of them around. */
export interface Design {
  /** settle() skips requests that are decided already. */
  decidesOnce: boolean;
  /** settle() lets a key pay once; otherwise the key is only looked at by admission. */
  keyPaysOnce: boolean;
  /** A commit of unknown outcome is asked for again, not made good with a blind credit. */
  asksAgainAfterUnknownCommit: boolean;
  /** A charge under a key has no row in `undelivered`, so nobody can reverse it. */
  keyedChargesStand: boolean;
  /** Whoever reverses takes the row of `undelivered` in the same transaction. */
  reversalTakesTheRow: boolean;
  /** `undelivered` is in Postgres, out of reach for a flush. */
  evidenceInPostgres: boolean;
  sweeps: boolean;
  /** The sweeper only drops the hold of what it finds charged; the reversal is the reconciler's. */
  sweeperLeavesCharges: boolean;
  /** The first round of a caretaker, and the first after a new run of Redis, sweeps every organization. */
  sweepsEverybodyAtFirst: boolean;
  /** A copy of the pair is replaced by a newer one only. */
  storesNewerPairsOnly: boolean;
  /** Copies that Redis lost or has from the past are made anew. */
  reconcilesPairs: boolean;
  /** Where the key has paid, admission places a hold of 0 mils. */
  holdsWhatIsPaid: boolean;
  /** Only the search that a record names may end it. */
  recordsHaveOwners: boolean;
  /** A delivered answer is confirmed. */
  confirms: boolean;
  /** A process that stops waits for its confirmations. */
  exitConfirms: boolean;
  /** No 200 is begun behind the fence. */
  fences: boolean;
  /** An API's refund that meets a charge leaves hold and record to whoever charged (ifCharged "keep_hold"). */
  apiLeavesCharges: boolean;
  /** Postgres is asked before a caller is refused for credits. */
  asksBeforeRefusing: boolean;
  /** A run without an answer that finds its search charged reverses the charge itself, instead of telling the API. */
  workerReverses: boolean;
}

/** All rules kept, as the code does: what is proved, and what planted bugs differ from in one place. */
export const asBuilt: Design = {
  decidesOnce: true,
  keyPaysOnce: true,
  asksAgainAfterUnknownCommit: true,
  keyedChargesStand: true,
  reversalTakesTheRow: true,
  evidenceInPostgres: true,
  sweeps: true,
  sweeperLeavesCharges: true,
  sweepsEverybodyAtFirst: true,
  storesNewerPairsOnly: true,
  reconcilesPairs: true,
  holdsWhatIsPaid: true,
  recordsHaveOwners: true,
  confirms: true,
  exitConfirms: true,
  fences: true,
  apiLeavesCharges: true,
  asksBeforeRefusing: true,
  workerReverses: false,
};
