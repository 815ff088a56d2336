/** The rules of the design, each of which a design bug breaks by turning it off. */
export interface Design {
  /** settle() skips requests that are decided already. */
  decidesOnce: boolean;
  /** settle() lets a key pay once; otherwise only admission checks the key. */
  keyPaysOnce: boolean;
  /** settle() refuses a charge beyond the limit; otherwise only admission checks the limit. */
  limitsCharges: boolean;
  /** Credit that is added is no spending given back: it makes no room under a limit. */
  grantsAreNoRoom: boolean;
  /** What was spent is forgotten in Redis with the balance that it belongs to. */
  bindsSpending: boolean;
  /** What Redis does not know to be spent is copied from Postgres; otherwise it begins with nothing. */
  seedsSpending: boolean;
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
  /** A copy of the balance is replaced by a newer one only. */
  storesNewerBalancesOnly: boolean;
  /** Copies that Redis lost, or that are old after a restore, are refreshed. */
  reconcilesBalances: boolean;
  /** Only the search that a record names may end it. */
  recordsHaveOwners: boolean;
  /** A delivered answer is confirmed. */
  confirms: boolean;
  /** A process that stops waits for its confirmations. */
  exitConfirms: boolean;
  /** No 200 is sent after the fence. */
  fences: boolean;
  /** The API reads Postgres before it refuses a caller for credits. */
  asksBeforeRefusing: boolean;
  /** Before a 402 the API frees the mils of holds whose searches are decided. */
  freesDecidedHolds: boolean;
  /** It asks Redis again where a hold was dropped since it found too little there. */
  noticesDroppedHolds: boolean;
  /** The answer under a key is stored by the transaction that charges it. */
  storesWithTheCharge: boolean;
  /** Under a key the caller gets the answer that Postgres has, whatever the run has. */
  answersFromPostgres: boolean;
  /** A search under a key that Redis does not know is looked up in Postgres before it is enqueued. */
  looksUpFirst: boolean;
  /** After an admission of unknown outcome the API refunds a hold that Redis has, and nothing else. */
  refundsHoldsOnly: boolean;
  /** When a caller disconnects, the hold of a search that a worker has becomes a concurrency slot. */
  keepsSlots: boolean;
  /** A worker that knows that the caller is gone asks for no further page. */
  stopsWhenTold: boolean;
  /** The calls of a search count as unpaid once, however often the message arrives. */
  countsOnce: boolean;
  /** An MCP caller's cancellation changes nothing once the delivery has begun. */
  ignoresLateCancels: boolean;
  /** The charge is final with the first usable copy of the answer, not with the last byte. */
  firstCopyIsFinal: boolean;
  /** An answer whose charge is given back does not reach the wire. */
  reversedIsUnsent: boolean;
  /** A run without an answer that finds its search charged reverses the charge itself and does not leave that to the API. */
  workerReverses: boolean;
}

/** All rules kept, as in the code. This is what is proved, and what each design bug differs from in one index. */
export const asBuilt: Design = {
  decidesOnce: true,
  keyPaysOnce: true,
  limitsCharges: true,
  grantsAreNoRoom: true,
  bindsSpending: true,
  seedsSpending: true,
  asksAgainAfterUnknownCommit: true,
  keyedChargesStand: true,
  reversalTakesTheRow: true,
  evidenceInPostgres: true,
  sweeps: true,
  sweeperLeavesCharges: true,
  storesNewerBalancesOnly: true,
  reconcilesBalances: true,
  recordsHaveOwners: true,
  confirms: true,
  exitConfirms: true,
  fences: true,
  asksBeforeRefusing: true,
  freesDecidedHolds: true,
  noticesDroppedHolds: true,
  storesWithTheCharge: true,
  answersFromPostgres: true,
  looksUpFirst: true,
  refundsHoldsOnly: true,
  keepsSlots: true,
  stopsWhenTold: true,
  countsOnce: true,
  ignoresLateCancels: true,
  firstCopyIsFinal: true,
  reversedIsUnsent: true,
  workerReverses: false,
};
