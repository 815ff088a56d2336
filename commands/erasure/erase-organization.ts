import type { Redis } from "ioredis";
import { z } from "zod";
import { type Actor, recordAudit } from "../../shared/audit/audit.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import { inTransaction } from "../../shared/database/transaction.ts";
import { eraseWebhook } from "../../shared/webhooks/webhooks.ts";
import { eraseAutoTopup } from "../../api/auto-topups/auto-topup.ts";
import {
  listSessions,
  sessionKeyOf,
  sessionListOf,
  sessionSearchesOf,
} from "../../api/billing/session/session-keys.ts";
import { listTokens } from "../../api/tokens/tokens.ts";
import { rawAnswersKeyOf } from "../../worker/raw-answers/raw-answers.ts";
import { listRecentSearches } from "./export-organization.ts";

/**
 * Erases what the service has about an organization, except the numbers: the ledger keeps ids and amounts, the audit trail
 * ids and terms. Each step may be repeated, and a run that died is finished by the next one:
 *
 * 1. The organization is suspended and its tokens are revoked, so that nothing new begins.
 * 2. {@link countOpen} is zero: no search runs and no charge waits for its confirmation.
 * 3. {@link beginErasure}: name, the webhook and its events, automatic top-ups with the saved card, in one transaction with the
 *    entry of the erasure. From here on the organization is marked as erased. An API has Stripe delete the customer later.
 * 4. {@link eraseRows}: names and hashes of tokens, answers with their keys, and logged and refused searches, a page at a time.
 * 5. {@link eraseFromRedis}: sessions, raw answers, failed jobs, and the keys of the organization.
 * 6. Stripe expires the Checkout Sessions that are open.
 *
 * Postgres refuses step 3 before step 1, and step 4 before step 3. If steps 5 and 6 never run, what they delete expires.
 */

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
  return { searches: fields - hasSum, charges: valueOf(z.number(), rows[0]) };
}

const begunRow = rowOf({
  outcome: z.enum(["erased", "active", "open", "unknown"]),
  fresh: z.boolean(),
  balanceMils: z.number().nullable(),
});

/**
 * Begins to erase the organization in Postgres. A repeat finds nothing more and has no entry in the audit trail.
 * @returns the credit that is left in the ledger and can never be spent; or why nothing was erased: `active`
 * before it is suspended without tokens, `open` while a charge waits for its confirmation.
 */
export async function beginErasure(
  database: Database,
  actor: Actor,
  organizationId: string,
): Promise<{ balanceMils: number } | "active" | "open" | "unknown"> {
  return inTransaction(database, async (transaction) => {
    const { rows } = await transaction.query("select * from begin_erasure($1)", [organizationId]);
    const { outcome, fresh, balanceMils } = begunRow.parse(rows[0]);
    if (outcome !== "erased") return outcome;
    // In this order: a pause of automatic top-ups locks them, and then the webhook for its event.
    await eraseAutoTopup(transaction, organizationId);
    await eraseWebhook(transaction, organizationId);
    if (fresh)
      await recordAudit(transaction, { actor, action: "organization.erased", organizationId, after: { balanceMils } });
    return { balanceMils: balanceMils ?? 0 };
  });
}

/** Rows that one statement erases: far fewer than it has time for. */
const rowsPerPage = 1_000;

/** How many rows of each kind were erased. */
export interface ErasedRows {
  tokens: number;
  answers: number;
  searches: number;
}

/** The kinds of rows by their names in `erase_page()`: answers under keys are in a ring of four tables. */
const kinds: [string, keyof ErasedRows][] = [
  ["tokens", "tokens"],
  ...[0, 1, 2, 3].map((slot): [string, "answers"] => [`answers_${slot}`, "answers"]),
  ["kept_answers", "answers"],
  ["search_log", "searches"],
  ["refused_searches", "searches"],
];

const pageRow = z.object({ erased: z.number(), next: z.string().nullable() });

/**
 * Erases the rows of an organization whose erasure has begun, each page in a transaction of its own. After a failure the next call
 * erases what is left.
 * @param options.onPage gets after each page what this call has erased.
 * @throws if the erasure has not begun.
 */
export async function eraseRows(
  database: Database,
  organizationId: string,
  options: { rowsMax?: number; onPage?: (erased: ErasedRows) => void } = {},
): Promise<ErasedRows> {
  const { rowsMax = rowsPerPage, onPage } = options;
  const erased: ErasedRows = { tokens: 0, answers: 0, searches: 0 };
  for (const [what, kind] of kinds)
    for (let since: string | null | undefined; since !== null; ) {
      const page = { name: "erase_page", text: "select * from erase_page($1, $2, $3, $4)" };
      const { rows } = await database.query({ ...page, values: [organizationId, what, since, rowsMax] });
      const { erased: rowsErased, next } = pageRow.parse(rows[0]);
      erased[kind] += rowsErased;
      since = next;
      onPage?.({ ...erased });
    }
  return erased;
}

/** Deletes what Redis has of the organization. The index of open holds has none of them by now. */
export async function eraseFromRedis(
  { database, redis }: { database: Database; redis: Redis },
  organizationId: string,
): Promise<void> {
  const keys = keysOf(organizationId);
  const own = Object.values(keys).filter((key) => typeof key === "string");
  for (const { idHash } of await listSessions(redis, organizationId))
    await redis.del(sessionKeyOf(idHash), sessionSearchesOf(organizationId, idHash));
  for await (const requestId of listRecentSearches(database, organizationId))
    await redis.del(rawAnswersKeyOf(requestId));
  const tokens = await listTokens(database, organizationId);
  const counts = [
    `pages:${organizationId}`,
    `pages:tokens:${organizationId}`,
    `sign-ins:${organizationId}`,
    `sign-ins:${organizationId}:search`,
    ...tokens.flatMap(({ tokenId }) => [
      `sign-ins:${tokenId}`,
      `${keys.unpaid}:${tokenId}`,
      `${keys.unpaidKeyed}:${tokenId}`,
    ]),
  ];
  await redis.del(...own, sessionListOf(organizationId), ...counts);
}
