/** The rules of the design as the code keeps them. This is what is proved. A design bug breaks one or two of them. */
export const asBuilt = {
  /** settle() skips requests that are decided already. */
  decidesOnce: true,
  /** settle() lets a key pay once; otherwise only admission checks the key. */
  keyPaysOnce: true,
  /** settle() refuses a charge beyond the limit; otherwise only admission checks the limit. */
  limitsCharges: true,
  /** Added credit makes no room under a limit. */
  grantsAreNoRoom: true,
  /** Redis forgets spending together with its balance. */
  bindsSpending: true,
  /** Spending that Redis does not know is copied from Postgres; otherwise it starts at 0. */
  seedsSpending: true,
  /** A commit of unknown outcome is retried, and not compensated with a blind credit. */
  asksAgainAfterUnknownCommit: true,
  /** A charge under a key has no row in `undelivered`, so it cannot be reversed. */
  keyedChargesStand: true,
  /** A reversal deletes the row of `undelivered` in the same transaction. */
  reversalTakesTheRow: true,
  /** `undelivered` is in Postgres, where a flush of Redis does not reach it. */
  evidenceInPostgres: true,
  sweeps: true,
  /** The sweeper only drops the hold of what it finds charged; the reversal is the reconciler's. */
  sweeperLeavesCharges: true,
  /** Only a newer balance replaces the copy. */
  storesNewerBalancesOnly: true,
  /** Copies are refreshed if Redis lost them, or if they are old after a restore. */
  reconcilesBalances: true,
  /** Only the search that a record names may end it. */
  recordsHaveOwners: true,
  /** A delivered answer is confirmed. */
  confirms: true,
  /** A process that stops waits for its confirmations. */
  exitConfirms: true,
  /** No 200 is sent after the fence. */
  fences: true,
  /** The API reads Postgres before it refuses a caller for lack of credit. */
  asksBeforeRefusing: true,
  /** Before a 402 the API frees the mils of holds whose searches are decided. */
  freesDecidedHolds: true,
  /** It asks Redis again if a hold was dropped since Redis had too little. */
  noticesDroppedHolds: true,
  /** The answer under a key is stored by the transaction that charges it. */
  storesWithTheCharge: true,
  /** Under a key the caller gets the answer that Postgres has, not that of the run. */
  answersFromPostgres: true,
  /** A search under a key that Redis does not know is looked up in Postgres before it is enqueued. */
  looksUpFirst: true,
  /** After an admission of unknown outcome the API refunds only a hold that Redis has. */
  refundsHoldsOnly: true,
  /** When a caller disconnects, the hold of a search that a worker has becomes a concurrency slot. */
  keepsSlots: true,
  /** A worker that knows that the caller has disconnected requests no further page. */
  stopsWhenTold: true,
  /** The calls of a search count as unpaid once, however often the message arrives. */
  countsOnce: true,
  /** An MCP caller's cancellation changes nothing once the delivery has begun. */
  ignoresLateCancels: true,
  /** The charge is final with the first usable copy of the answer, not with its last byte. */
  firstCopyIsFinal: true,
  /** An answer whose charge is reversed is not sent. */
  reversedIsUnsent: true,
  /** A run without an answer that finds its search charged reverses the charge itself instead of leaving that to the API. */
  workerReverses: false,
};

export type Design = Record<keyof typeof asBuilt, boolean>;
