/** An organization's balance, and the number of ledger entries that made it. The higher version is the newer balance. */
export interface VersionedBalance {
  balanceMils: number;
  version: number;
}
