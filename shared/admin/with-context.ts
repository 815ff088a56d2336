import { pino } from "pino";
import { readConfig } from "../config.ts";
import { type Context, openContext } from "../context.ts";
import type { VersionedBalance } from "../credits/versioned-balance.ts";
import { settleHolds } from "../credits/holds.ts";
import { describeError } from "../log.ts";
import { announceIdentityChange } from "../organizations/organizations.ts";
import { whenReady } from "../redis/connect.ts";

const redisReadyMs = 2_000;

/** Runs one command with Postgres and Redis open, prints what it returns as one line of JSON, and closes both. */
export async function withContext(command: (context: Context) => Promise<object>): Promise<void> {
  // Only what hinders the command; on stderr, so that stdout stays one line of JSON.
  const log = pino({ level: "error", serializers: { err: describeError } }, pino.destination(2));
  const context = openContext({ config: readConfig(), name: "admin", databaseSizeMax: 1, log });
  try {
    process.stdout.write(`${JSON.stringify(await command(context))}\n`);
  } finally {
    await context.shutdown.run(log);
  }
}

/** Tells Redis a new balance. Without Redis it is enough that Postgres has it: the next search or the reconciler looks. */
export async function publishBalance(
  { redis }: Context,
  organizationId: string,
  pair: VersionedBalance,
): Promise<void> {
  if (await whenReady(redis, redisReadyMs)) await settleHolds(redis, organizationId, pair, []).catch(warn);
  else warn();
}

/** Makes every API forget what it knew of tokens, plans and organizations; without Redis they forget within 2 s anyway. */
export async function publishIdentityChange({ redis }: Context): Promise<void> {
  if (await whenReady(redis, redisReadyMs)) await announceIdentityChange(redis).catch(warn);
  else warn();
}

function warn(): void {
  process.stderr.write("Redis is out of reach: done in Postgres, and the API learns of it by itself.\n");
}
