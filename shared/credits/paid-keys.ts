import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { protocolTimes } from "../protocol-times.ts";

/**
 * Idempotency-Keys that have paid: `settle()` inserts one with its charge and makes no second charge under it for 24
 * hours. This is what a repeat is owed even if Redis has lost the answer.
 */

const paidRow = z.object({ fingerprint: z.string() });

/**
 * Reads the fingerprint of the query that a key has paid for.
 * @returns undefined if the key has not paid, or expires so soon that a repeat admitted now for 0 mils might settle after
 * that: `settle()` would then take it for the key's first search, and at a price of 0 it would own the key for a day.
 */
export async function readPaidKey(
  database: Database,
  organizationId: string,
  keyHash: string,
): Promise<string | undefined> {
  const { rows } = await database.query({
    name: "read_paid_key",
    text: `select fingerprint from paid_keys
           where organization_id = $1 and key_hash = $2 and expires_at > now() + make_interval(secs => $3)`,
    values: [organizationId, keyHash, protocolTimes.paidKeyMarginMs / 1_000],
  });
  return rows[0] ? paidRow.parse(rows[0]).fingerprint : undefined;
}

/** Deletes keys whose 24 hours are over, oldest first. */
export async function deleteExpiredKeys(database: Database, limit: number): Promise<void> {
  await database.query(
    `delete from paid_keys where (organization_id, key_hash) in (
       select organization_id, key_hash from paid_keys where expires_at < now() order by expires_at limit $1)`,
    [limit],
  );
}
