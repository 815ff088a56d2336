import type { Redis } from "ioredis";
import type { VersionedBalance } from "../credits/versioned-balance.ts";
import { storeBalance } from "../credits/holds.ts";
import { publishIdentityChange } from "../organizations/organizations.ts";
import { whenReady } from "../redis/connect.ts";

/**
 * What a command publishes to Redis after Postgres has it. Both are best effort: a command succeeds without Redis, warns on
 * stderr, and the running processes read Postgres later.
 */

const redisReadyMs = 2_000;

/** Stores a new balance in Redis. Without Redis, the next search that needs it or the reconciler reads it from Postgres. */
export async function announceBalance(redis: Redis, organizationId: string, balance: VersionedBalance): Promise<void> {
  if (await whenReady(redis, redisReadyMs)) await storeBalance(redis, organizationId, balance).catch(warn);
  else warn();
}

/** Makes every API drop its cache of tokens, plans and organizations. Without Redis the entries expire within 2 s. */
export async function announceIdentityChange(redis: Redis): Promise<void> {
  if (await whenReady(redis, redisReadyMs)) await publishIdentityChange(redis).catch(warn);
  else warn();
}

function warn(): void {
  process.stderr.write("Redis is unreachable: the change is saved in Postgres, and the API picks it up by itself.\n");
}
