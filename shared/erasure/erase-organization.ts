import type { Redis } from "ioredis";
import { z } from "zod";
import { type Actor, recordAudit } from "../audit/audit.ts";
import { eraseAutoTopup } from "../auto-topups/auto-topup.ts";
import { keysOf } from "../credits/redis-keys.ts";
import type { Database } from "../database/pool.ts";
import { inTransaction } from "../database/transaction.ts";
import { listSessions, sessionKeyOf, sessionListOf, sessionSearchesOf } from "../organizations/session-keys.ts";
import { listTokens } from "../organizations/tokens.ts";
import { rawAnswersKeyOf } from "../raw-answers/raw-answers.ts";
import { eraseSearchLog } from "../search-log/keep-search-log.ts";
import { eraseWebhook } from "../webhooks/webhooks.ts";
import { listRecentSearches } from "./recent-searches.ts";

/**
 * Erases what the service has about an organization, except the numbers: the ledger keeps ids and amounts, the audit trail
 * ids and terms. Each step may be repeated, and a run that died is finished by the next one:
 *
 * 1. The organization is suspended and its tokens are revoked, so that nothing new begins.
 * 2. {@link countOpen} is zero: no search runs and no charge waits for its confirmation.
 * 3. {@link eraseFromPostgres}: name, names and hashes of tokens, answers and keys, the search log, the webhook and its
 *    events, automatic top-ups with the saved card, in one transaction with its entry. An API has Stripe delete the customer later.
 * 4. {@link eraseFromRedis}: sessions, raw answers, failed jobs, and the keys of the organization.
 *
 * Postgres refuses step 3 before step 1. What step 4 deletes expires by itself if it is never run.
 */

const openRow = z.object({ undelivered: z.number() });

/** Searches that run, and charges whose delivery is not confirmed yet. */
export async function countOpen(
  { database, redis }: { database: Database; redis: Redis },
  organizationId: string,
): Promise<{ searches: number; charges: number }> {
  const { holds } = keysOf(organizationId);
  const [fields, hasSum] = await Promise.all([redis.hlen(holds), redis.hexists(holds, "held")]);
  const { rows } = await database.query("select count(*) as undelivered from undelivered where organization_id = $1", [
    organizationId,
  ]);
  return { searches: fields - hasSum, charges: openRow.parse(rows[0]).undelivered };
}

const erasedRow = z.object({
  outcome: z.enum(["erased", "active", "open", "unknown"]),
  balance_mils: z.number().nullable(),
});

/**
 * Erases the organization in Postgres. A repeat finds nothing more and has no entry in the audit trail.
 * @returns the credit that is left in the ledger and can never be spent; or why nothing was erased: `active`
 * before it is suspended without tokens, `open` while a charge waits for its confirmation.
 */
export async function eraseFromPostgres(
  database: Database,
  actor: Actor,
  organizationId: string,
): Promise<{ balanceMils: number } | "active" | "open" | "unknown"> {
  return inTransaction(database, async (transaction) => {
    const { rows } = await transaction.query("select * from erase_organization($1)", [organizationId]);
    const { outcome, fresh, balance_mils: balanceMils } = erasedRow.extend({ fresh: z.boolean() }).parse(rows[0]);
    if (outcome !== "erased") return outcome;
    await eraseSearchLog(transaction, organizationId);
    await eraseWebhook(transaction, organizationId);
    await eraseAutoTopup(transaction, organizationId);
    if (fresh)
      await recordAudit(transaction, actor, {
        action: "organization.erased",
        organizationId,
        after: { balanceMils },
      });
    return { balanceMils: balanceMils ?? 0 };
  });
}

/** Deletes what Redis has of the organization. The index of open holds has none of them by now. */
export async function eraseFromRedis(
  { database, redis }: { database: Database; redis: Redis },
  organizationId: string,
): Promise<void> {
  const own = Object.values(keysOf(organizationId)).filter((key) => typeof key === "string");
  for (const { idHash } of await listSessions(redis, organizationId))
    await redis.del(sessionKeyOf(idHash), sessionSearchesOf(organizationId, idHash));
  for await (const requestId of listRecentSearches(database, organizationId))
    await redis.del(rawAnswersKeyOf(requestId));
  const tokens = await listTokens(database, organizationId);
  const counts = [`pages:${organizationId}`, ...tokens.map(({ tokenId }) => `sign-ins:${tokenId}`)];
  await redis.del(...own, sessionListOf(organizationId), ...counts);
}
