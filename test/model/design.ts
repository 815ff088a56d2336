/** The rules of the design as the code keeps them. This is what is proved. A design bug breaks one or two of them. */
export const asBuilt = {
  /** settle() skips requests that are decided already. */
  decidesOnce: true,
  /** settle() lets a key pay once; otherwise only admission checks the key. */
  keyPaysOnce: true,
  /** settle() refuses a charge beyond the limit; otherwise only admission checks the limit. */
  limitsCharges: true,
  /** Credit that is added is no spending given back: it makes no room under a limit. */
  grantsAreNoRoom: true,
  /** What was spent is forgotten in Redis with the balance that it belongs to. */
  bindsSpending: true,
  /** What Redis does not know to be spent is copied from Postgres; otherwise it begins with nothing. */
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
  /** A copy of the balance is replaced by a newer one only. */
  storesNewerBalancesOnly: true,
  /** Copies that Redis lost, or that are old after a restore, are refreshed. */
  reconcilesBalances: true,
  /** Only the search that a record names may end it. */
  recordsHaveOwners: true,
  /** A delivered answer is confirmed. */
  confirms: true,
  /** A process that stops waits for its confirmations. */
  exitConfirms: true,
  /** No 200 is sent after the fence. */
  fences: true,
  /** The API reads Postgres before it refuses a caller for credits. */
  asksBeforeRefusing: true,
  /** Before a 402 the API frees the mils of holds whose searches are decided. */
  freesDecidedHolds: true,
  /** It asks Redis again where a hold was dropped since it found too little there. */
  noticesDroppedHolds: true,
  /** The answer under a key is stored by the transaction that charges it. */
  storesWithTheCharge: true,
  /** Under a key the caller gets the answer that Postgres has, whatever the run has. */
  answersFromPostgres: true,
  /** A search under a key that Redis does not know is looked up in Postgres before it is enqueued. */
  looksUpFirst: true,
  /** After an admission of unknown outcome the API refunds a hold that Redis has, and nothing else. */
  refundsHoldsOnly: true,
  /** When a caller disconnects, the hold of a search that a worker has becomes a concurrency slot. */
  keepsSlots: true,
  /** A worker that knows that the caller is gone asks for no further page. */
  stopsWhenTold: true,
  /** The calls of a search count as unpaid once, however often the message arrives. */
  countsOnce: true,
  /** An MCP caller's cancellation changes nothing once the delivery has begun. */
  ignoresLateCancels: true,
  /** The charge is final with the first usable copy of the answer, not with the last byte. */
  firstCopyIsFinal: true,
  /** An answer whose charge is given back does not reach the wire. */
  reversedIsUnsent: true,
  /** A run without an answer that finds its search charged reverses the charge itself and does not leave that to the API. */
  workerReverses: false,
};

export type Design = Record<keyof typeof asBuilt, boolean>;
