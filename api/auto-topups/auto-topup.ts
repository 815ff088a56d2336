import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import { inTransaction, type Querying } from "../../shared/database/transaction.ts";
import { isErased } from "../../shared/organizations/organizations.ts";
import { askToDelete } from "./stripe-deletions.ts";

/** The settings of automatic top-ups and their state. `payments.ts` has the payments. */

/** Why a payment failed, or why automatic top-ups are paused. The pages have a sentence for each. */
const failureReasons = [
  "card_declined",
  "insufficient_funds",
  "expired_card",
  "authentication_required",
  /** Stripe does not have the card any more. */
  "card_unusable",
  /** Stripe refused the request itself. */
  "refused",
  /** The operator refunded the payment before its credit was added. Another charge at once would undo that. */
  "refunded",
  /** Stripe gave no answer in all attempts. */
  "payments_unavailable",
  /** The payer disputed a payment at the bank. */
  "disputed",
] as const;
export type FailureReason = (typeof failureReasons)[number];

const savedCard = z.object({
  paymentMethodId: z.string(),
  /** Such as `visa`. */
  brand: z.string(),
  last4: z.string(),
  /** Such as `4/2030`. */
  expires: z.string(),
});
/** The card that is charged, as Stripe describes it. */
export type SavedCard = z.infer<typeof savedCard>;

const autoTopupTerms = z.object({ thresholdMils: z.number(), amountMils: z.number(), ceilingMils: z.number() });
/** When to charge the card: below the threshold, this amount each time, up to the ceiling in a calendar month (UTC). */
export type AutoTopupTerms = z.infer<typeof autoTopupTerms>;

const [time, reason] = [z.coerce.date(), z.enum(failureReasons)];
const failedPayment = z.object({ at: time, mils: z.number(), reason, retryAt: time });
/** A payment that failed, and when the next one may begin. */
export type LastFailure = z.infer<typeof failedPayment>;

const orUndefined = <Schema extends z.ZodType>(schema: Schema) =>
  schema.nullable().transform((part) => part ?? undefined);

const autoTopupRow = rowOf({
  customerId: z.string(),
  card: orUndefined(savedCard),
  /** When Stripe got the newest card, also if it was removed. */
  cardEnteredAt: orUndefined(z.date()),
  /** Undefined until the payer set them. They stay when the payer switches automatic top-ups off. */
  terms: orUndefined(autoTopupTerms),
  isOn: z.boolean(),
  paused: orUndefined(z.object({ at: time, reason })),
  /** The payments of this month that did not fail. */
  monthMils: z.number(),
  /** The payment that Stripe has not confirmed yet. */
  open: orUndefined(z.object({ at: time, mils: z.number() })),
  /** The newest payment, if it failed and another one is to follow. */
  lastFailure: orUndefined(failedPayment),
});
export type AutoTopup = z.infer<typeof autoTopupRow>;

/** Reads the settings of an organization; undefined if it never began to save a card. */
export async function readAutoTopup(database: Querying, organizationId: string): Promise<AutoTopup | undefined> {
  const { rows } = await database.query(
    `select a.customer_id, a.card_entered_at, a.is_on,
       case when a.payment_method_id is not null then json_build_object('paymentMethodId', a.payment_method_id,
         'brand', a.card_brand, 'last4', a.card_last4, 'expires', a.card_expires) end as card,
       case when a.amount_mils is not null then json_build_object('thresholdMils', a.threshold_mils,
         'amountMils', a.amount_mils, 'ceilingMils', a.ceiling_mils) end as terms,
       case when a.paused_at is not null then json_build_object('at', a.paused_at, 'reason', a.pause_reason) end as paused,
       (select coalesce(sum(p.mils), 0)::bigint from auto_topup_payments p
         where p.organization_id = a.organization_id and p.state <> 'failed'
           and p.asked_at >= date_trunc('month', now() at time zone 'UTC') at time zone 'UTC') as month_mils,
       (select json_build_object('at', p.asked_at, 'mils', p.mils) from auto_topup_payments p
         where p.organization_id = a.organization_id and p.state = 'open') as open,
       case when a.failures > 0 and a.next_payment_at > now() then (
         select json_build_object('at', p.asked_at, 'mils', p.mils, 'reason', p.failure, 'retryAt', a.next_payment_at)
         from auto_topup_payments p where p.organization_id = a.organization_id and p.failure = any($2)
         order by p.asked_at desc limit 1) end as last_failure
     from auto_topups a where a.organization_id = $1`,
    [organizationId, failureReasons],
  );
  return rows[0] && autoTopupRow.parse(rows[0]);
}

/**
 * Stores the id of the organization's customer at Stripe, unless it has another one than the customer that is gone there, or was
 * erased. Then Stripe deletes this one.
 * @returns the stored id; undefined if the organization was erased.
 */
export async function keepCustomer(
  database: Database,
  organizationId: string,
  customerId: string,
  goneId?: string,
): Promise<string | undefined> {
  return inTransaction(database, async (transaction) => {
    if (!(await isErased(transaction, organizationId)))
      await transaction.query(
        `insert into auto_topups (organization_id, customer_id) values ($1, $2)
         on conflict (organization_id) do update set customer_id = excluded.customer_id where auto_topups.customer_id = $3`,
        [organizationId, customerId, goneId],
      );
    const kept = await readAutoTopup(transaction, organizationId);
    if (kept?.customerId !== customerId) await askToDelete(transaction, customerId);
    return kept?.customerId;
  });
}

/** The settings of an organization, locked until the end of the transaction; undefined if it has none. */
export async function lockAutoTopup(transaction: Querying, organizationId: string): Promise<AutoTopup | undefined> {
  await transaction.query("select from auto_topups where organization_id = $1 for update", [organizationId]);
  return readAutoTopup(transaction, organizationId);
}

/** Deletes the settings, the card and the payments of an organization; its customer at Stripe follows. */
export async function eraseAutoTopup(transaction: Querying, organizationId: string): Promise<void> {
  await transaction.query("select erase_auto_topup($1)", [organizationId]);
}
