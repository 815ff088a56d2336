import { z } from "zod";
import type { Database } from "../database/pool.ts";

/**
 * Searches that were decided as not charged, one row each. Rows are deleted after 30 days, so what is counted for ever is in
 * `refund_counts`. `decide_searches()` writes both.
 */

const refundRow = z.object({
  number: z.number(),
  version: z.number(),
  request_id: z.string(),
  reason: z.string(),
  token_id: z.string().nullable(),
  created_at: z.date(),
});

/** Reads the kept refunds of an organization in their order, from the first one after a number. */
export async function readRefundsPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: number; limit: number },
) {
  const { rows } = await database.query(
    `select number, version, request_id, reason, token_id, created_at from refunds
     where organization_id = $1 and number > $2 order by number limit $3`,
    [organizationId, after, limit],
  );
  return rows
    .map((row) => refundRow.parse(row))
    .map(({ number, version, request_id: requestId, reason, token_id: tokenId, created_at: at }) => {
      return { number, version, at, requestId, reason, tokenId };
    });
}

/** Deletes refunds that are 30 days old, at most so many. @returns how many. */
export async function clearOldRefunds(database: Database, limit: number): Promise<number> {
  const { rows } = await database.query("select clear_old_refunds($1) as deleted", [limit]);
  return z.object({ deleted: z.number() }).parse(rows[0]).deleted;
}
