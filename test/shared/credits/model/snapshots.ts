import type { Redis } from "ioredis";
import { z } from "zod";
import { keysOf } from "../../../../shared/credits/redis-keys.ts";
import type { Database } from "../../../../shared/database/pool.ts";
import { type Participants, keyHashes } from "./participants.ts";

const postgresSnapshot = z.object({
  accounts: z.array(
    z.object({
      id: z.string(),
      balanceMils: z.number(),
      version: z.number(),
      entries: z.array(
        z.object({
          version: z.number(),
          kind: z.enum(["grant", "charge", "reversal", "correction"]),
          mils: z.number(),
          balanceMils: z.number(),
          subject: z.string(),
          reason: z.string().nullable(),
          tokenId: z.string().nullable(),
        }),
      ),
      refunds: z.array(
        z.object({ version: z.number(), subject: z.string(), reason: z.string(), tokenId: z.string().nullable() }),
      ),
    }),
  ),
  undelivered: z.array(z.string()),
  paid: z.array(z.tuple([z.string(), z.string()])),
  answers: z.array(z.tuple([z.string(), z.string(), z.string()])),
  /** Owner, mils a day and a month, mils spent on the day and in the month. */
  limits: z.array(z.tuple([z.string(), z.number().nullable(), z.number().nullable(), z.number(), z.number()])),
});
export type PostgresSnapshot = z.infer<typeof postgresSnapshot>;

const text = `
  select json_build_object(
    'accounts', (select json_agg(json_build_object('id', o.id, 'balanceMils', o.balance_mils, 'version', o.version,
        'entries', (select coalesce(json_agg(json_build_object('version', l.version, 'kind', l.kind, 'mils', l.amount_mils,
            'balanceMils', l.balance_after_mils, 'subject', coalesce(l.request_id, l.grant_id), 'reason', l.reason,
            'tokenId', l.token_id)
            order by l.version), '[]') from ledger_entries l where l.organization_id = o.id),
        'refunds', (select coalesce(json_agg(json_build_object('version', f.version, 'subject', f.request_id, 'reason', f.reason,
            'tokenId', f.token_id) order by f.number), '[]') from refunds f where f.organization_id = o.id)) order by o.id)
      from organizations o where o.id = any ($1)),
    'undelivered', (select coalesce(json_agg(u.request_id order by u.request_id), '[]')
      from undelivered u where u.request_id = any ($2)),
    'paid', (select coalesce(json_agg(json_build_array(p.organization_id || ' ' || p.key_hash, p.fingerprint)
        order by p.organization_id, p.key_hash), '[]')
      from key_payments p where p.organization_id = any ($1)),
    'answers', (select coalesce(json_agg(json_build_array(a.organization_id || ' ' || a.key_hash, a.request_id,
        encode(a.body, 'hex')) order by a.organization_id, a.key_hash), '[]')
      from answers a where a.organization_id = any ($1)),
    'limits', (select coalesce(json_agg(json_build_array(c.id, c.day_limit_mils, c.month_limit_mils, c.day, c.month)
        order by c.id collate "C"), '[]')
      from (select o.id, o.day_limit_mils, o.month_limit_mils, s.spent_day_mils, s.spent_month_mils
            from organizations o join organization_spending s on s.organization_id = o.id
            where o.id = any ($1) and s.spent_day_mils is not null
            union all
            select t.id, t.day_limit_mils, t.month_limit_mils, s.spent_day_mils, s.spent_month_mils
            from tokens t join token_spending s on s.token_id = t.id where t.organization_id = any ($1))
        c (id, day_limit_mils, month_limit_mils, day, month))) as seen`;

/** Reads the state of the organizations of the run from Postgres. */
export async function readPostgres(participants: Participants, database: Database): Promise<PostgresSnapshot> {
  const values = [
    participants.organizations.map(({ id }) => id),
    participants.searches.map(({ requestId }) => requestId),
  ];
  const { rows } = await database.query({ name: "model_postgres", text, values });
  return postgresSnapshot.parse(rows[0]?.seen);
}

/** The state of one organization in Redis, without deadlines, which depend on the clock of Redis. */
export interface RedisSnapshot {
  balance: { balance?: string; version?: string; spent?: string; entry?: string };
  /** What limited tokens spent, what they hold, and for which searches. */
  tokens: Record<string, string>;
  heldMils: number;
  holds: Record<string, { mils: number; keyHash: string }>;
  used: number;
  records: Record<string, Record<string, string>>;
}

export async function readRedis(redis: Redis, organizationId: string): Promise<RedisSnapshot> {
  const keys = keysOf(organizationId);
  const [balance, tokens, { held, ...holds }, used, ...records] = await Promise.all([
    redis.hgetall(keys.balance),
    redis.hgetall(keys.tokens),
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
    tokens,
    heldMils: Number(held ?? 0),
    holds: Object.fromEntries(Object.entries(holds).map(([id, hold]) => [id, readHold(hold)])),
    used: Number(used ?? 0),
    records: Object.fromEntries(keyHashes.map((hash, at) => [hash, records[at] ?? {}])),
  };
}
