import { z } from "zod";
import type { Database } from "../database/pool.ts";

/**
 * Idempotency-Keys that have paid: `decide_searches()` inserts one with its charge and makes no second charge under it for 24
 * hours. This is what a repeat is owed, whatever Redis has lost. It is in the row of its answer, see stored-answers.ts.
 */

/** A key of an organization; `hash` as in an IdempotencyKey. */
export interface OwnedKey {
  organizationId: string;
  hash: string;
}

export const nameOfKey = ({ organizationId, hash }: OwnedKey) => `${organizationId} ${hash}`;

export interface PaidKey {
  /** The search that paid. */
  requestId: string;
  /** The fingerprint of the query that it has paid for. */
  fingerprint: string;
}

const paidRow = z.object({
  organization_id: z.string(),
  key_hash: z.string(),
  request_id: z.string(),
  fingerprint: z.string(),
});

/** Reads which of these keys have paid, in one round trip. @returns by {@link nameOfKey}. */
export async function readPaidKeys(database: Database, keys: readonly OwnedKey[]): Promise<Map<string, PaidKey>> {
  const { rows } = await database.query({
    name: "read_paid_keys",
    // Lateral with a limit: each key is looked up by the index. A join would read the whole table for a few keys.
    text: `select p.*
           from unnest($1::text[], $2::text[]) as a (organization_id, key_hash)
           cross join lateral (
             select k.organization_id, k.key_hash, k.request_id, k.fingerprint
             from key_payments k
             where k.organization_id = a.organization_id and k.key_hash = a.key_hash and k.expires_at > now()
             limit 1) p`,
    values: [keys.map(({ organizationId }) => organizationId), keys.map(({ hash }) => hash)],
  });
  return new Map(
    rows
      .map((row) => paidRow.parse(row))
      .map((row) => [
        nameOfKey({ organizationId: row.organization_id, hash: row.key_hash }),
        { requestId: row.request_id, fingerprint: row.fingerprint },
      ]),
  );
}
