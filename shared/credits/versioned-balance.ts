/** An organization's balance, and the number of ledger entries that made it. The higher version is the newer balance. */
export interface VersionedBalance {
  balanceMils: number;
  version: number;
  /** What the organization spent by this version, as text of `spending_text()`; absent if unknown, or without limits. */
  spending?: string | undefined;
}

/** What a limited token spent by a version of its organization's balance, as text of `spending_text()`. */
export interface TokenSpending {
  tokenId: string;
  version: number;
  spending: string;
}

/** @throws {TypeError} if there is none. */
export const newestBalance = (balances: readonly VersionedBalance[]): VersionedBalance =>
  balances.reduce((newest, balance) => (balance.version > newest.version ? balance : newest));
