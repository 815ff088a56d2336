import { z } from "zod";
import type { Database } from "../database/pool.ts";

const entryRow = z.object({
  version: z.number(),
  kind: z.string(),
  amount_mils: z.number(),
  balance_after_mils: z.number(),
  request_id: z.string().nullable(),
  grant_id: z.string().nullable(),
  reason: z.string().nullable(),
  created_at: z.date(),
});

/** Reads the ledger entries of an organization as they are, in their order, from the first one after a version. */
export async function readLedgerPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: number; limit: number },
) {
  const { rows } = await database.query(
    `select version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, created_at
     from ledger_entries where organization_id = $1 and version > $2 order by version limit $3`,
    [organizationId, after, limit],
  );
  return rows
    .map((row) => entryRow.parse(row))
    .map(({ version, kind, reason, ...row }) => ({
      version,
      at: row.created_at,
      kind,
      amountMils: row.amount_mils,
      balanceAfterMils: row.balance_after_mils,
      requestId: row.request_id,
      grantId: row.grant_id,
      reason,
    }));
}
