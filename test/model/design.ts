/** The rules of the design, each of which a design bug breaks by turning it off. */
export interface Design {
  /** settle() skips requests that are decided already. */
  decidesOnce: boolean;
  /** settle() lets a key pay once; otherwise only admission checks the key. */
  keyPaysOnce: boolean;
  /** A commit of unknown outcome is retried, and not compensated with a blind credit. */
  asksAgainAfterUnknownCommit: boolean;
  /** A charge under a key has no row in `undelivered`, so it cannot be reversed. */
  keyedChargesStand: boolean;
  /** A reversal deletes the row of `undelivered` in the same transaction. */
  reversalTakesTheRow: boolean;
  /** `undelivered` is in Postgres, where a flush of Redis does not reach it. */
  evidenceInPostgres: boolean;
  sweeps: boolean;
  /** The sweeper only drops the hold of what it finds charged; the reversal is the reconciler's. */
  sweeperLeavesCharges: boolean;
  /** A new maintenance leader, and the first round after a restart of Redis, sweep every organization. */
  sweepsAllAtFirst: boolean;
  /** A copy of the balance is replaced by a newer one only. */
  storesNewerBalancesOnly: boolean;
  /** Copies that Redis lost, or that are old after a restore, are refreshed. */
  reconcilesBalances: boolean;
  /** Where the key has paid, admission places a hold of 0 mils. */
  holdsWhatIsPaid: boolean;
  /** Only the search that a record names may end it. */
  recordsHaveOwners: boolean;
  /** A delivered answer is confirmed. */
  confirms: boolean;
  /** A process that stops waits for its confirmations. */
  exitConfirms: boolean;
  /** No 200 is sent after the fence. */
  fences: boolean;
  /** An API's refund that meets a charge leaves hold and record to the worker that charged (ifCharged "keep_hold"). */
  apiLeavesCharges: boolean;
  /** The API reads Postgres before it refuses a caller for credits. */
  asksBeforeRefusing: boolean;
  /** A run without an answer that finds its search charged reverses the charge itself and does not leave that to the API. */
  workerReverses: boolean;
}

/** All rules kept, as in the code. This is what is proved, and what each design bug differs from in one index. */
export const asBuilt: Design = {
  decidesOnce: true,
  keyPaysOnce: true,
  asksAgainAfterUnknownCommit: true,
  keyedChargesStand: true,
  reversalTakesTheRow: true,
  evidenceInPostgres: true,
  sweeps: true,
  sweeperLeavesCharges: true,
  sweepsAllAtFirst: true,
  storesNewerBalancesOnly: true,
  reconcilesBalances: true,
  holdsWhatIsPaid: true,
  recordsHaveOwners: true,
  confirms: true,
  exitConfirms: true,
  fences: true,
  apiLeavesCharges: true,
  asksBeforeRefusing: true,
  workerReverses: false,
};
