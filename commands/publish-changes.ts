import type { Redis } from "ioredis";
import { storeBalance } from "../shared/credits/stored-balances.ts";
import type { VersionedBalance } from "../shared/credits/ledger.ts";
import { publishIdentityChange } from "../shared/organizations/organizations.ts";
import { whenReady } from "../shared/redis/connect.ts";
import { redisTimeoutMs } from "./refusals.ts";
import type { CommandContext } from "./run-command.ts";

/**
 * What a command publishes in Redis once Postgres has the change. Both are best effort: without Redis the command still
 * succeeds and warns, and the running processes pick the change up from Postgres.
 */

type Parts = Pick<CommandContext, "redis" | "warn">;

/** Stores a new balance in Redis. Otherwise the next search that needs it, or the reconciler, reads it from Postgres. */
export const announceBalance = (parts: Parts, organizationId: string, balance: VersionedBalance): Promise<void> =>
  publish(parts, (redis) => storeBalance(redis, organizationId, balance));

/** Makes every API drop its cache of tokens, plans and organizations. Otherwise the entries expire within 2 s. */
export const announceIdentityChange = (parts: Parts): Promise<void> => publish(parts, publishIdentityChange);

async function publish({ redis, warn }: Parts, send: (redis: Redis) => Promise<unknown>): Promise<void> {
  try {
    if (await whenReady(redis, redisTimeoutMs)) return void (await send(redis));
  } catch {
    // Redis went away meanwhile.
  }
  warn("Redis is unreachable. The change is saved in Postgres, and the API picks it up from there.");
}
