import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf } from "../database/row.ts";
import { newId } from "../ids.ts";
import type { ReversalReason } from "../outcomes.ts";
import { type VersionedBalance, waitingBriefly } from "./ledger.ts";

/**
 * What happens to a charge after it was made. Its row in `undelivered` is the right to reverse it.
 *
 *   undelivered  entered by a charge without an Idempotency-Key: `decide_searches()` or `charge_alone()` inserts the row with it.
 *     ├─▶ delivered  the API deletes the row once a whole copy of the answer was handed to the caller's socket. Final.
 *     └─▶ reversed   `reverse_charges()` deletes the row and inserts the reversal in one transaction. Final. Done by the
 *                    API that waits for the answer, or after five minutes without a confirmation by the reconciler.
 *   owed         entered by a charge under a key, which has no row: it cannot be reversed. The answer stays retrievable
 *                for 24 hours (stored-answers.ts).
 *
 * Delivery and reversal need the same row, so they exclude each other. If the API dies after it handed the copy over and before
 * the delete, the reconciler reverses the charge of a delivered answer: in doubt, the caller does not pay.
 */

const reversalRow = rowOf({
  organizationId: z.string(),
  requestIds: z.array(z.string()),
  /** The sum of what these searches were charged. */
  mils: z.number(),
  balanceMils: z.number(),
  version: z.number(),
});
export type Reversal = Omit<z.infer<typeof reversalRow>, keyof VersionedBalance> & {
  balance: VersionedBalance;
  /** The balance before the reversals of this call; absent without any. */
  before: VersionedBalance | undefined;
};

/**
 * Reverses the charges that are still undelivered; all others stay as they are. A row that another transaction keeps locked is
 * waited for briefly.
 * @returns for each organization named what was reversed, and its newest balance.
 */
export async function reverseCharges(
  database: Database,
  charges: readonly { organizationId: string; requestId: string }[],
  reason: ReversalReason,
): Promise<Reversal[]> {
  const { rows } = await database.query({
    name: "reverse_charges",
    // The statement's snapshot has the charges, but not the reversals that the function inserts.
    text: `select r.organization_id, r.reversed as request_ids, r.balance_mils, r.version,
             (select coalesce(-sum(l.amount_mils), 0)::bigint from ledger_entries l
              where l.request_id = any(r.reversed) and l.kind = 'charge') as mils
           from reverse_charges((select $1::text[] ${waitingBriefly}), $2, $3) r`,
    values: [charges.map((charge) => charge.organizationId), charges.map((charge) => charge.requestId), reason],
  });
  return rows
    .map((row) => reversalRow.parse(row))
    .map(({ balanceMils, version, ...reversal }) => {
      const { requestIds, mils } = reversal;
      // A new id, because the id of a charge may name the gap that the charge found.
      const before = { balanceMils: balanceMils - mils, version: version - requestIds.length, entryId: newId("gap") };
      return { ...reversal, balance: { balanceMils, version }, before: requestIds.length > 0 ? before : undefined };
    });
}

/** Confirms that the answers of these searches were delivered. From then on their charges cannot be reversed. */
export async function confirmDelivered(database: Database, requestIds: readonly string[]): Promise<void> {
  await database.query({
    name: "confirm_delivered",
    text: "delete from undelivered where request_id = any($1)",
    values: [requestIds],
  });
}

const undeliveredRow = rowOf({ requestId: z.string(), organizationId: z.string() });

/** Lists undelivered charges that are older than `ageMs`, oldest first, without those of the organizations in `except`. */
export async function listUndelivered(
  database: Database,
  ageMs: number,
  limit: number,
  except: readonly string[] = [],
) {
  const { rows } = await database.query(
    `select request_id, organization_id from undelivered
     where charged_at < now() - make_interval(secs => $1) and organization_id <> all ($3)
     order by charged_at limit $2`,
    [ageMs / 1_000, limit, except],
  );
  return rows.map((row) => undeliveredRow.parse(row));
}
