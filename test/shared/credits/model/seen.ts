import type { Redis } from "ioredis";
import { z } from "zod";
import { keysOf } from "../../../../shared/credits/holds.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { type Cast, keyHashes } from "./cast.ts";

const seenBooks = z.object({
  accounts: z.array(
    z.object({
      id: z.string(),
      balanceMils: z.number(),
      version: z.number(),
      entries: z.array(
        z.object({
          version: z.number(),
          kind: z.enum(["grant", "charge", "refund", "reversal"]),
          mils: z.number(),
          balanceMils: z.number(),
          subject: z.string(),
          reason: z.string().nullable(),
        }),
      ),
    }),
  ),
  undelivered: z.array(z.string()),
  paid: z.array(z.tuple([z.string(), z.string()])),
});
export type SeenBooks = z.infer<typeof seenBooks>;

const text = `
  select json_build_object(
    'accounts', (select json_agg(json_build_object('id', o.id, 'balanceMils', o.balance_mils, 'version', o.version,
        'entries', (select coalesce(json_agg(json_build_object('version', l.version, 'kind', l.kind, 'mils', l.amount_mils,
            'balanceMils', l.balance_after_mils, 'subject', coalesce(l.request_id, l.grant_id), 'reason', l.reason)
            order by l.version), '[]') from ledger_entries l where l.organization_id = o.id)) order by o.id)
      from organizations o where o.id = any ($1)),
    'undelivered', (select coalesce(json_agg(u.request_id order by u.request_id), '[]')
      from undelivered u where u.request_id = any ($2)),
    'paid', (select coalesce(json_agg(json_build_array(p.organization_id || ' ' || p.key_hash, p.fingerprint)
        order by p.organization_id, p.key_hash), '[]')
      from paid_keys p where p.organization_id = any ($1))) as seen`;

/** Reads what Postgres has about the organizations of the run. */
export async function readBooks(cast: Cast, database: Database): Promise<SeenBooks> {
  const values = [cast.organizations.map(({ id }) => id), cast.searches.map(({ requestId }) => requestId)];
  const { rows } = await database.query({ name: "model_books", text, values });
  return seenBooks.parse(rows[0]?.seen);
}

/** What Redis has about one organization, without deadlines: they are times of its own clock. */
export interface SeenGate {
  balance: { balance?: string; version?: string };
  heldMils: number;
  holds: Record<string, { mils: number; keyHash: string }>;
  used: number;
  records: Record<string, Record<string, string>>;
}

export async function readGate(redis: Redis, organizationId: string): Promise<SeenGate> {
  const keys = keysOf(organizationId);
  const [balance, { held, ...holds }, used, ...records] = await Promise.all([
    redis.hgetall(keys.balance),
    redis.hgetall(keys.holds),
    redis.get(keys.window),
    ...keyHashes.map((hash) => redis.hgetall(keys.record(hash))),
  ]);
  const readHold = (hold: string) => {
    const [, mils, keyHash] = /^(\d+):\d+:(.*)$/.exec(hold) ?? [];
    return { mils: Number(mils), keyHash: keyHash ?? hold };
  };
  return {
    balance,
    heldMils: Number(held ?? 0),
    holds: Object.fromEntries(Object.entries(holds).map(([id, hold]) => [id, readHold(hold)])),
    used: Number(used ?? 0),
    records: Object.fromEntries(keyHashes.map((hash, at) => [hash, records[at] ?? {}])),
  };
}
