import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";

/** Credit that was paid for through Stripe. Its grant has the id of the Checkout Session, or of an automatic top-up's PaymentIntent. */
export interface ListedTopup {
  version: number;
  at: Date;
  grantId: string;
  mils: number;
}

const topupRow = z.object({
  version: z.number(),
  created_at: z.date(),
  grant_id: z.string(),
  amount_mils: z.number(),
});

/** Lists top-ups of an organization, newest first, from the first one before a version. */
export async function listTopups(
  database: Database,
  organizationId: string,
  { before = Number.MAX_SAFE_INTEGER, limit }: { before?: number | undefined; limit: number },
): Promise<ListedTopup[]> {
  const { rows } = await database.query(
    `select version, created_at, grant_id, amount_mils from ledger_entries
     where organization_id = $1 and kind = 'grant' and kind <> 'charge' and reason = 'top-up' and version < $2
     order by version desc limit $3`,
    [organizationId, before, limit],
  );
  return rows
    .map((row) => topupRow.parse(row))
    .map((row) => ({ version: row.version, at: row.created_at, grantId: row.grant_id, mils: row.amount_mils }));
}

/** Whether a payment was credited to this organization. */
export async function isTopupOf(database: Database, organizationId: string, grantId: string): Promise<boolean> {
  const { rowCount } = await database.query(
    `select 1 from ledger_entries
     where grant_id = $1 and kind = 'grant' and organization_id = $2 and reason = 'top-up'`,
    [grantId, organizationId],
  );
  return rowCount === 1;
}

/** Whether the grant of a top-up is that of an automatic one. */
export const isAutomatic = (grantId: string) => grantId.startsWith("pi_");
