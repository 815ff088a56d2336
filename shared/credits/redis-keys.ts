/** The keys under which Redis has an organization's credit. All but the first three have its hash tag. */

/** The index of all organizations' open holds; open-holds.ts reads it. */
export const holdIndexKey = "holds:deadlines";

/** The set of organizations with open holds. */
export const openOrganizationsKey = "holds:organizations";

/** Copies of balances that may come from entries which Postgres lost; see ledger-gaps.ts. */
export const suspectCopiesKey = "holds:suspect-copies";

export const keysOf = (organizationId: string) => ({
  balance: `{${organizationId}}:balance`,
  holds: `{${organizationId}}:holds`,
  window: `{${organizationId}}:window`,
  /** Provider calls left unpaid: all of the organization, or only those of keyed searches; followed by a token, only its own. */
  unpaid: `{${organizationId}}:unpaid`,
  unpaidKeyed: `{${organizationId}}:unpaid-keyed`,
  /** What limited tokens spent, and hold. */
  tokens: `{${organizationId}}:tokens`,
  record: (keyHash: string) => `{${organizationId}}:key:${keyHash}`,
  /** The window of time that requests for one search at a door agree on. */
  doorWindow: (searchHash: string) => `{${organizationId}}:door:${searchHash}`,
});
