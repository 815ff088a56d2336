/** The keys under which Redis has an organization's credit. All but the index have its hash tag. */

/** The index of all organizations' open holds; hold-deadlines.ts reads it. */
export const holdIndexKey = "holds:deadlines";

export const keysOf = (organizationId: string) => ({
  balance: `{${organizationId}}:pair`,
  holds: `{${organizationId}}:holds`,
  window: `{${organizationId}}:window`,
  abandoned: `{${organizationId}}:abandoned`,
  /** What limited tokens spent, and hold. */
  tokens: `{${organizationId}}:tokens`,
  record: (keyHash: string) => `{${organizationId}}:key:${keyHash}`,
});
