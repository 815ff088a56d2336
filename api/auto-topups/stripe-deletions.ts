import { z } from "zod";
import { rowOf } from "../../shared/database/row.ts";
import type { Querying } from "../../shared/database/transaction.ts";

/**
 * Cards and customers that Stripe has to delete. The transaction that deletes them here also records them, and an API then asks
 * Stripe until it succeeds: a card that a payer removed must not stay at Stripe because Stripe was down.
 */

/** After the first attempt the pauses grow to six hours; 30 attempts take six days. */
const attemptsMax = 30;
const firstPauseSeconds = 60;
const pauseFactor = 3;
const pauseSecondsMax = 6 * 3_600;

/** Records that Stripe has to delete a card (`pm_…`) or a customer (`cus_…`). */
export async function askToDelete(transaction: Querying, stripeId: string): Promise<void> {
  await transaction.query("insert into stripe_deletions (stripe_id) values ($1) on conflict do nothing", [stripeId]);
}

const deletionRow = rowOf({
  stripeId: z.string(),
  /** Counting this one. */
  attempts: z.number(),
  isLast: z.boolean(),
});
type Deletion = z.infer<typeof deletionRow>;

/** Claims what is due, and sets when it is tried again. After the last attempt the row stays for the operator. */
export async function claimDeletions(database: Querying, limit: number): Promise<Deletion[]> {
  const { rows } = await database.query({
    name: "claim_stripe_deletions",
    text: `update stripe_deletions d set attempts = d.attempts + 1,
        next_attempt_at = case when d.attempts + 1 < $2
          then now() + make_interval(secs => least($5, $3 * $4 ^ least(d.attempts, 20))::integer) end
      where stripe_id in (
        select stripe_id from stripe_deletions where next_attempt_at <= now() order by next_attempt_at limit $1
        for update skip locked)
      returning d.stripe_id, d.attempts, d.attempts >= $2 as is_last`,
    values: [limit, attemptsMax, firstPauseSeconds, pauseFactor, pauseSecondsMax],
  });
  return rows.map((row) => deletionRow.parse(row));
}

/** Stripe has deleted it, or never had it. */
export async function recordDeletion(database: Querying, stripeId: string): Promise<void> {
  await database.query("delete from stripe_deletions where stripe_id = $1", [stripeId]);
}
