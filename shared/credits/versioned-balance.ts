/** An organization's balance, and the number of ledger entries that made it. The higher version is the newer balance. */
export interface VersionedBalance {
  balanceMils: number;
  version: number;
}

/** @throws {TypeError} if there is none. */
export const newestBalance = (balances: readonly VersionedBalance[]): VersionedBalance =>
  balances.reduce((newest, balance) => (balance.version > newest.version ? balance : newest));
