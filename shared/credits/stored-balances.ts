import type { Redis } from "ioredis";
import { z } from "zod";
import { execPipeline } from "../redis/pipeline.ts";
import { settleHolds } from "./holds.ts";
import { keysOf } from "./redis-keys.ts";
import type { TokenSpending, VersionedBalance } from "./versioned-balance.ts";

/** The copies of balances in Redis. A copy may be missing or older than Postgres' balance, but never newer. */

/** Stores an organization's balance in Redis, and what limited tokens spent, unless Redis has newer ones. Ends no hold. */
export const storeBalance = (
  redis: Redis,
  organizationId: string,
  balance: VersionedBalance,
  tokens: readonly TokenSpending[] = [],
) => settleHolds(redis, organizationId, balance, [], tokens);

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
