/** The terms of a plan, as options of `plan set`. */
export const terms = ["--price", "17", "--limit", "1", "--window", "1", "--concurrency", "1"];

/** What the commands are run with. */
export interface Named {
  orgId: string;
  tokenId: string;
  /** A search with raw answers, and one that failed. */
  rawRequestId: string;
  shownRequestId: string;
  /** An event that was delivered. */
  eventId: string;
  /** An open gap of the ledger. */
  gapId: string;
  /** A folder for files. */
  folder: string;
}

/** Each command that changes something or shows what callers searched for: how it is run, and what it records. */
export function recordingCommands(named: Named): Record<string, { args: string[]; actions: string[] }> {
  const { orgId, tokenId, rawRequestId, shownRequestId, eventId, gapId, folder } = named;
  return {
    "org create": {
      args: ["org", "create", "--name", "Acme", "--plan", "free"],
      actions: ["organization.created", "credit.granted", "token.issued"],
    },
    "org rename": { args: ["org", "rename", orgId, "Acme Ltd"], actions: ["organization.renamed"] },
    "org suspend": { args: ["org", "suspend", orgId], actions: ["organization.suspended"] },
    "org export": { args: ["org", "export", orgId], actions: ["organization.exported"] },
    "org resume": { args: ["org", "resume", orgId], actions: ["organization.resumed"] },
    "credit grant": { args: ["credit", "grant", orgId, "5"], actions: ["credit.granted"] },
    "credit correct": {
      args: ["credit", "correct", orgId, "-5", "--reason", "for Mrs. Smith"],
      actions: ["credit.corrected"],
    },
    "credit topups-check": { args: ["credit", "topups-check"], actions: ["credit.topped_up"] },
    "ledger gap-close": {
      args: ["ledger", "gap-close", gapId, "--note", "for Mrs. Smith"],
      actions: ["ledger.gap_closed"],
    },
    "ledger export": {
      args: ["ledger", "export", "--month", "2026-01", "--out", folder],
      actions: ["ledger.exported"],
    },
    "auto-topup off": {
      args: ["auto-topup", "off", orgId, "--reason", "disputed"],
      actions: ["auto_topup.set"],
    },
    "token issue": { args: ["token", "issue", orgId], actions: ["token.issued"] },
    "token revoke": { args: ["token", "revoke", tokenId], actions: ["token.revoked"] },
    "limit org": { args: ["limit", "org", orgId, "--day", "500"], actions: ["limit.set"] },
    "limit token": { args: ["limit", "token", tokenId, "--month", "500"], actions: ["limit.set"] },
    // It was 0 before, and KEPT_ANSWERS_DAYS allows no other.
    "org keep-answers": { args: ["org", "keep-answers", orgId, "--days", "0"], actions: [] },
    "org low-balance": {
      args: ["org", "low-balance", orgId, "--below", "500"],
      actions: ["low_balance.set"],
    },
    "webhook replay": { args: ["webhook", "replay", eventId], actions: ["webhook.replayed"] },
    "webhook remove": { args: ["webhook", "remove", orgId], actions: ["webhook.removed"] },
    "plan set": { args: ["plan", "set", "trial", ...terms], actions: ["plan.set"] },
    "plan assign": { args: ["plan", "assign", orgId, "trial"], actions: ["plan.assigned"] },
    "search show": { args: ["search", "show", shownRequestId], actions: ["search.shown"] },
    "search raw": { args: ["search", "raw", rawRequestId], actions: ["search.raw_read"] },
    "locations refresh": { args: ["locations", "refresh"], actions: ["locations.refreshed"] },
    "locations remove": { args: ["locations", "remove", "dataforseo"], actions: ["locations.removed"] },
    "org erase": {
      args: ["org", "erase", orgId, "--yes"],
      actions: ["organization.suspended", "token.revoked", "organization.erased"],
    },
  };
}
