/** How a command ended, for scripts. 0 means that it did what it was asked to. */
export const exitCodes = {
  /** It was refused, it failed, or it found something wrong. Its message or its result says what. */
  refused: 1,
  /** An unknown command, a wrong argument, or a wrong setting. Repeated as it is, it fails again. */
  wrongUsage: 2,
  /** Postgres or Redis did not answer. Repeated later, it may succeed. */
  outOfReach: 3,
  /** An invariant of the ledger is broken. */
  booksBroken: 4,
} as const;
