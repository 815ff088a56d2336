import { z } from "zod";
import type { Database } from "../../../shared/database/pool.ts";

/** What Postgres decided about one search. */
export interface Account {
  organizationId: string;
  decided: "charge" | "refund";
  /** When Postgres decided, by the clock of this machine. */
  decidedAtMs: number;
  reason: string | null;
  mils: number;
  reversedFor: string | undefined;
  /** Whether it paid for an Idempotency-Key. */
  keyed: boolean;
}

export interface Accounts {
  byRequest: ReadonlyMap<string, Account>;
  /** Hashes of the Idempotency-Keys that have paid. */
  paidKeyHashes: readonly string[];
}

const entryRow = z.object({
  organization_id: z.string(),
  kind: z.enum(["charge", "refund", "reversal"]),
  mils: z.number(),
  created_at: z.date(),
  request_id: z.string(),
  reason: z.string().nullable(),
});
const paidRow = z.object({ request_id: z.string(), key_hash: z.string() });

/** Reads the decided searches of these organizations, and the keys that have paid. */
export async function readAccounts(database: Database, organizationIds: readonly string[]): Promise<Accounts> {
  const entries = await database.query(
    `select organization_id, kind, amount_mils as mils, created_at, request_id, reason from ledger_entries
     where request_id is not null and organization_id = any ($1)
     union all
     select organization_id, 'refund', 0, created_at, request_id, reason from refunds where organization_id = any ($1)`,
    [organizationIds],
  );
  const paid = await database.query("select request_id, key_hash from key_payments where organization_id = any ($1)", [
    organizationIds,
  ]);
  const paidKeys = paid.rows.map((row) => paidRow.parse(row));
  const keyed = new Set(paidKeys.map(({ request_id }) => request_id));
  const byRequest = new Map<string, Account>();
  const rows = entries.rows.map((row) => entryRow.parse(row));
  for (const { organization_id, kind, mils, created_at, request_id, reason } of rows) {
    if (kind === "reversal") continue;
    byRequest.set(request_id, {
      organizationId: organization_id,
      decided: kind,
      decidedAtMs: created_at.getTime(),
      reason,
      mils,
      reversedFor: undefined,
      keyed: keyed.has(request_id),
    });
  }
  for (const { kind, request_id, reason } of rows) {
    const account = byRequest.get(request_id);
    if (kind === "reversal" && account) account.reversedFor = reason ?? "";
  }
  return { byRequest, paidKeyHashes: paidKeys.map(({ key_hash }) => key_hash) };
}

/** Whether the search is charged and the charge was not reversed. */
export const isStanding = ({ decided, reversedFor }: Account) => decided === "charge" && reversedFor === undefined;

/** How many charges of these organizations stand. */
export async function countCharges(database: Database, ...organizationIds: string[]): Promise<number> {
  const { byRequest } = await readAccounts(database, organizationIds);
  return [...byRequest.values()].filter(isStanding).length;
}
