import { z } from "zod";
import { expandAnswer } from "../compress-answer.ts";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";

/**
 * Idempotency-Keys that have paid, and their answers, in Postgres for 24 hours. `decide_searches()` or `charge_alone()` inserts
 * both in the transaction of the charge and makes no second charge under the key meanwhile. So a charge under a key always has
 * its answer, and Postgres decides which bytes every repeat gets, whatever Redis has lost.
 */

/** A key of an organization; `hash` as in an IdempotencyKey. */
export interface OwnedKey {
  organizationId: string;
  hash: string;
}

export const nameOfKey = ({ organizationId, hash }: OwnedKey) => `${organizationId} ${hash}`;

const paidRow = rowOf({
  organizationId: z.string(),
  hash: z.string(),
  /** The search that paid. */
  requestId: z.string(),
  /** The fingerprint of the query that it has paid for. */
  fingerprint: z.string(),
});
export type PaidKey = z.infer<typeof paidRow>;

/** Reads which of these keys have paid, in one round trip. @returns by {@link nameOfKey}. */
export async function readPaidKeys(database: Database, keys: readonly OwnedKey[]): Promise<Map<string, PaidKey>> {
  const { rows } = await database.query({
    name: "read_paid_keys",
    // Lateral with a limit: each key is looked up by the index. A join would read the whole table for a few keys.
    text: `select p.*
           from unnest($1::text[], $2::text[]) as a (organization_id, key_hash)
           cross join lateral (
             select k.organization_id, k.key_hash as hash, k.request_id, k.fingerprint
             from key_payments k
             where k.organization_id = a.organization_id and k.key_hash = a.key_hash and k.expires_at > now()
             limit 1) p`,
    values: [keys.map(({ organizationId }) => organizationId), keys.map(({ hash }) => hash)],
  });
  return new Map(rows.map((row) => paidRow.parse(row)).map((paid) => [nameOfKey(paid), paid]));
}

/** The answer under a key, and the request that paid for it. */
export interface StoredAnswer {
  requestId: string;
  body: Buffer;
}

const answerRow = rowOf({
  organizationId: z.string(),
  hash: z.string(),
  requestId: z.string(),
  body: z.instanceof(Buffer),
});

/** Reads the answers under these keys, in one round trip. @returns by {@link nameOfKey}; one that is unreadable rejects. */
export async function readStoredAnswers(
  database: Database,
  keys: readonly OwnedKey[],
): Promise<Map<string, Promise<StoredAnswer>>> {
  const { rows } = await database.query({
    name: "read_stored_answers",
    // Lateral with a limit: each key is looked up by the indexes. A join would read whole tables for a few keys.
    text: `select s.*
           from unnest($1::text[], $2::text[]) as a (organization_id, key_hash)
           cross join lateral (
             select r.organization_id, r.key_hash as hash, r.request_id, r.body
             from key_payments p
             join answers r on r.slot = p.slot and r.organization_id = p.organization_id and r.key_hash = p.key_hash
             where p.organization_id = a.organization_id and p.key_hash = a.key_hash and p.expires_at > now()
             limit 1) s`,
    values: [keys.map(({ organizationId }) => organizationId), keys.map(({ hash }) => hash)],
  });
  const expand = async (requestId: string, body: Buffer) => ({ requestId, body: await expandAnswer(body) });
  const found = rows.map((row) => answerRow.parse(row));
  return new Map(found.map(({ requestId, body, ...key }) => [nameOfKey(key), expand(requestId, body)]));
}

/** Empties the table of the day before yesterday, whose answers and keys have all expired. @returns whether it had any. */
export async function clearOldAnswers(database: Database): Promise<boolean> {
  const { rows } = await database.query("select clear_old_answers() as cleared");
  return valueOf(z.boolean(), rows[0]);
}
