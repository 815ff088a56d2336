import type { Redis } from "ioredis";
import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { execPipeline } from "../redis/pipeline.ts";
import { keysOf } from "./redis-keys.ts";

const row = z.object({ id: z.string() });

/**
 * Deletes from Redis what tokens of these organizations spent, unless they are valid and have a limit. What their searches in
 * flight hold stays until these end. If a token gets a limit meanwhile, its next search copies what it spent from Postgres.
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
  const limited = new Set(rows.map((one) => row.parse(one).id));
  const deleting = redis.pipeline();
  for (const [at, ids] of tokens.entries()) {
    const unlimited = ids.filter((id) => !limited.has(id));
    if (unlimited.length > 0) deleting.hdel(keysOf(organizationIds[at] ?? "").tokens, ...unlimited);
  }
  await execPipeline(deleting);
}
