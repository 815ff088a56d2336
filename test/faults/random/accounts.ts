import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";

/** What the ledger says of one search. */
export interface Account {
  organizationId: string;
  decided: "charge" | "refund";
  /** When that was, by the clock of this machine. */
  atMs: number;
  reason: string | null;
  mils: number;
  reversedFor: string | undefined;
  /** Whether it paid for an Idempotency-Key. */
  keyed: boolean;
}

const entryRow = z.object({
  organization_id: z.string(),
  kind: z.enum(["grant", "charge", "refund", "reversal"]),
  mils: z.number(),
  created_at: z.date(),
  request_id: z.string().nullable(),
  reason: z.string().nullable(),
});
const paidRow = z.object({ request_id: z.string(), key_hash: z.string() });

/** Everything that was decided, by request id; and the keys that paid, as they are kept. */
export async function readAccounts(
  database: Database,
): Promise<{ accounts: Map<string, Account>; paidKeyHashes: string[] }> {
  const entries = await database.query(
    "select organization_id, kind, amount_mils as mils, created_at, request_id, reason from ledger_entries where kind <> 'grant'",
  );
  const paid = await database.query("select request_id, key_hash from paid_keys");
  const paidKeys = paid.rows.map((row) => paidRow.parse(row));
  const keyed = new Set(paidKeys.map(({ request_id }) => request_id));
  const accounts = new Map<string, Account>();
  const rows = entries.rows.map((row) => entryRow.parse(row));
  for (const { organization_id, kind, mils, created_at, request_id, reason } of rows) {
    if (request_id === null || (kind !== "charge" && kind !== "refund")) continue;
    const account = { organizationId: organization_id, decided: kind, atMs: created_at.getTime(), reason, mils };
    accounts.set(request_id, { ...account, keyed: keyed.has(request_id), reversedFor: undefined });
  }
  for (const { kind, request_id, reason } of rows) {
    const account = accounts.get(request_id ?? "");
    if (kind === "reversal" && account) account.reversedFor = reason ?? "";
  }
  return { accounts, paidKeyHashes: paidKeys.map(({ key_hash }) => key_hash) };
}
