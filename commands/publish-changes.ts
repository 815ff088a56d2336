import { storeBalance } from "../shared/credits/stored-balances.ts";
import type { VersionedBalance } from "../shared/credits/ledger.ts";
import { publishIdentityChange } from "../shared/organizations/organizations.ts";
import { whenReady } from "../shared/redis/connect.ts";
import type { CommandContext } from "./run-command.ts";

/**
 * What a command publishes in Redis once Postgres has the change. Both are best effort: without Redis the command still
 * succeeds and warns, and the running processes pick the change up from Postgres.
 */

const redisTimeoutMs = 2_000;
const warning = "Redis is unreachable. The change is saved in Postgres, and the API picks it up from there.";

/** Stores a new balance in Redis. Otherwise the next search that needs it, or the reconciler, reads it from Postgres. */
export async function announceBalance(
  { redis, warn }: Pick<CommandContext, "redis" | "warn">,
  organizationId: string,
  balance: VersionedBalance,
): Promise<void> {
  if (await whenReady(redis, redisTimeoutMs))
    await storeBalance(redis, organizationId, balance).catch(() => warn(warning));
  else warn(warning);
}

/** Makes every API drop its cache of tokens, plans and organizations. Otherwise the entries expire within 2 s. */
export async function announceIdentityChange({ redis, warn }: Pick<CommandContext, "redis" | "warn">): Promise<void> {
  if (await whenReady(redis, redisTimeoutMs)) await publishIdentityChange(redis).catch(() => warn(warning));
  else warn(warning);
}
