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
  return rows.map(readEntry);
}

/** Reads the entries of a search: the one that decided it, and a reversal. */
export async function readSearchLedger(database: Database, requestId: string) {
  const entriesOf = (kinds: string) =>
    `select version, kind, amount_mils, balance_after_mils, request_id, grant_id, reason, created_at
     from ledger_entries where request_id = $1 and kind ${kinds}`;
  // Each kind has an index of its own.
  const { rows } = await database.query(
    `${entriesOf("in ('charge', 'refund')")} union all ${entriesOf("= 'reversal'")} order by version`,
    [requestId],
  );
  return rows.map(readEntry).map(({ requestId: _ofAll, grantId: _none, ...entry }) => entry);
}

function readEntry(read: unknown) {
  const { version, kind, reason, ...row } = entryRow.parse(read);
  return {
    version,
    at: row.created_at,
    kind,
    amountMils: row.amount_mils,
    balanceAfterMils: row.balance_after_mils,
    requestId: row.request_id,
    grantId: row.grant_id,
    reason,
  };
}
