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

/** The card that is charged, as Stripe describes it. */
export interface SavedCard {
  paymentMethodId: string;
  /** Such as `visa`. */
  brand: string;
  last4: string;
  /** Such as `4/2030`. */
  expires: string;
}

/** When to charge the card: below the threshold, this amount each time, up to the ceiling in a calendar month (UTC). */
export interface AutoTopupTerms {
  thresholdMils: number;
  amountMils: number;
  ceilingMils: number;
}

export interface AutoTopup {
  customerId: string;
  card: SavedCard | undefined;
  /** When Stripe got the newest card, also if it was removed. */
  cardEnteredAt: Date | undefined;
  /** Undefined until the payer set them. They stay when the payer switches automatic top-ups off. */
  terms: AutoTopupTerms | undefined;
  isOn: boolean;
  paused: { at: Date; reason: FailureReason } | undefined;
  /** The payments of this month that did not fail. */
  monthMils: number;
  /** The payment that Stripe has not confirmed yet. */
  open: { at: Date; mils: number } | undefined;
  /** The newest payment, if it failed and another one is to follow. */
  lastFailure: LastFailure | undefined;
}

/** A payment that failed, and when the next one may begin. */
export interface LastFailure {
  at: Date;
  mils: number;
  reason: FailureReason;
  retryAt: Date;
}

const autoTopupRow = rowOf({
  customerId: z.string(),
  paymentMethodId: z.string().nullable(),
  cardBrand: z.string().nullable(),
  cardLast4: z.string().nullable(),
  cardExpires: z.string().nullable(),
  cardEnteredAt: z.date().nullable(),
  isOn: z.boolean(),
  thresholdMils: z.number().nullable(),
  amountMils: z.number().nullable(),
  ceilingMils: z.number().nullable(),
  pausedAt: z.date().nullable(),
  pauseReason: z.enum(failureReasons).nullable(),
  monthMils: z.number(),
  openAt: z.date().nullable(),
  openMils: z.number().nullable(),
  nextPaymentAt: z.date(),
  failedAt: z.date().nullable(),
  failedMils: z.number().nullable(),
  failure: z.enum(failureReasons).nullable(),
});

/** Reads the settings of an organization; undefined if it never began to save a card. */
export async function readAutoTopup(database: Querying, organizationId: string): Promise<AutoTopup | undefined> {
  const { rows } = await database.query(
    `select a.*, (select coalesce(sum(p.mils), 0)::bigint from auto_topup_payments p
       where p.organization_id = a.organization_id and p.state <> 'failed'
         and p.asked_at >= date_trunc('month', now() at time zone 'UTC') at time zone 'UTC') as month_mils,
       u.asked_at as open_at, u.mils as open_mils, f.asked_at as failed_at, f.mils as failed_mils, f.failure
     from auto_topups a
     left join auto_topup_payments u on u.organization_id = a.organization_id and u.state = 'open'
     left join lateral (select p.asked_at, p.mils, p.failure from auto_topup_payments p
       where p.organization_id = a.organization_id and p.failure = any($2) order by p.asked_at desc limit 1) f
       on a.failures > 0 and a.next_payment_at > now()
     where a.organization_id = $1`,
    [organizationId, failureReasons],
  );
  return rows[0] && readRow(autoTopupRow.parse(rows[0]));
}

function readRow(row: z.infer<typeof autoTopupRow>): AutoTopup {
  const { paymentMethodId, cardBrand: brand, cardLast4: last4, cardExpires: expires } = row;
  const { thresholdMils, amountMils, ceilingMils, pausedAt, pauseReason } = row;
  const { openAt, openMils, failedAt, failedMils, failure } = row;
  const hasCard = paymentMethodId !== null && brand !== null && last4 !== null && expires !== null;
  const hasTerms = thresholdMils !== null && amountMils !== null && ceilingMils !== null;
  const hasFailed = failedAt && failedMils !== null && failure;
  return {
    customerId: row.customerId,
    card: hasCard ? { paymentMethodId, brand, last4, expires } : undefined,
    cardEnteredAt: row.cardEnteredAt ?? undefined,
    terms: hasTerms ? { thresholdMils, amountMils, ceilingMils } : undefined,
    isOn: row.isOn,
    paused: pausedAt && pauseReason ? { at: pausedAt, reason: pauseReason } : undefined,
    monthMils: row.monthMils,
    open: openAt && openMils !== null ? { at: openAt, mils: openMils } : undefined,
    lastFailure: hasFailed
      ? { at: failedAt, mils: failedMils, reason: failure, retryAt: row.nextPaymentAt }
      : undefined,
  };
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
