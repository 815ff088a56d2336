import type { Redis } from "ioredis";
import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf, valuesOf } from "../database/row.ts";
import { execPipeline } from "../redis/connect.ts";
import { settleHolds } from "./holds.ts";
import type { TokenSpending, VersionedBalance } from "./ledger.ts";
import { keysOf } from "./redis-keys.ts";

/** The copies of balances in Redis. A copy may be missing or older than Postgres' balance, but never newer. */

/** Stores an organization's balance in Redis, and what limited tokens spent, unless Redis has newer ones. Ends no hold. */
export const storeBalance = (
  redis: Redis,
  organizationId: string,
  balance: VersionedBalance,
  tokens: readonly TokenSpending[] = [],
) => settleHolds(redis, organizationId, balance, [], { tokens });

const copyReply = z.tuple([z.coerce.number(), z.coerce.number()]);

/** Reads the copies that Redis has, in one round trip. */
export async function readStoredBalances(redis: Redis, ids: readonly string[]): Promise<Map<string, VersionedBalance>> {
  if (ids.length === 0) return new Map();
  const pipeline = redis.pipeline();
  for (const id of ids) pipeline.hmget(keysOf(id).balance, "balance", "version");
  const replies = await execPipeline(pipeline);
  return new Map(
    replies.flatMap((reply, at): [string, VersionedBalance][] => {
      if (!Array.isArray(reply) || reply[0] === null) return [];
      const [balanceMils, version] = copyReply.parse(reply);
      return [[ids[at] ?? "", { balanceMils, version }]];
    }),
  );
}

/** Deletes a copy, with what limited tokens spent; the organization's next search stores a new one from Postgres. */
export async function deleteStoredBalance(redis: Redis, organizationId: string): Promise<void> {
  const { balance, tokens } = keysOf(organizationId);
  await redis.del(balance, tokens);
}

const comparedRow = rowOf({
  organizationId: z.string(),
  balanceMils: z.number(),
  version: z.number(),
  ledgerMils: z.number(),
});

/** An organization's balance, and what its newest ledger entry says that the balance is. They differ only by a bug. */
export type ComparedBalance = Omit<z.infer<typeof comparedRow>, keyof VersionedBalance> & { balance: VersionedBalance };

/** Lists organizations with their balances in the order of their ids, from the first id after `after`. */
export async function listBalances(database: Database, after: string, limit: number): Promise<ComparedBalance[]> {
  const { rows } = await database.query(
    `select o.id as organization_id, o.balance_mils, o.version, coalesce(l.balance_after_mils, 0) as ledger_mils
     from organizations o left join ledger_entries l on l.organization_id = o.id and l.version = o.version
     where o.id > $1 order by o.id limit $2`,
    [after, limit],
  );
  return rows
    .map((row) => comparedRow.parse(row))
    .map(({ balanceMils, version, ...compared }) => ({ ...compared, balance: { balanceMils, version } }));
}

/**
 * Deletes from Redis what tokens of these organizations spent, unless a token is valid and has a limit. Mils that searches in
 * flight hold stay until these end. If a token gets a limit meanwhile, its next search copies its spending from Postgres.
 */
export async function forgetUnlimitedTokens(
  database: Database,
  redis: Redis,
  organizationIds: readonly string[],
): Promise<void> {
  const reading = redis.pipeline();
  for (const id of organizationIds) reading.hkeys(keysOf(id).tokens);
  const kept = z.array(z.array(z.string())).parse(await execPipeline(reading));
  const tokens = kept.map((fields) => fields.filter((field) => field.startsWith("tok_")));
  if (tokens.every((ids) => ids.length === 0)) return;
  const { rows } = await database.query(
    `select id from tokens where id = any($1) and num_nonnulls(day_limit_mils, month_limit_mils) > 0
       and revoked_at is null and (expires_at is null or expires_at > now())`,
    [tokens.flat()],
  );
  const limited = new Set(valuesOf(z.string(), rows));
  const deleting = redis.pipeline();
  for (const [at, ids] of tokens.entries()) {
    const unlimited = ids.filter((id) => !limited.has(id));
    if (unlimited.length > 0) deleting.hdel(keysOf(organizationIds[at] ?? "").tokens, ...unlimited);
  }
  await execPipeline(deleting);
}
