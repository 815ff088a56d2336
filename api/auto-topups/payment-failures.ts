import { type Actor, type Changer, recordAudit } from "../../shared/audit/audit.ts";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import { inTransaction, type Querying } from "../../shared/database/transaction.ts";
import { recordEvent } from "../../shared/webhooks/webhook-events.ts";
import { z } from "zod";
import { type FailureReason, lockAutoTopup } from "./auto-topup.ts";
import type { ClaimedPayment } from "./payments.ts";

/** After each failed payment the next one waits longer. After the fourth failure in a row the payer has to act. */

const pausesSeconds = [3_600, 6 * 3_600, 24 * 3_600];
const failuresMax = pausesSeconds.length + 1;

const actor: Actor = { kind: "service", name: "auto-topups" };

/** A payment that Stripe did not make, or that the operator refunded before it was credited. */
export interface Failure {
  reason: FailureReason;
  paymentIntentId: string | undefined;
  /** Whether the same card would be declined again, so that no further payment is tried. */
  isFinal: boolean;
}

/**
 * Ends a payment that failed, and sets when the next one may begin, or pauses automatic top-ups: with an entry in the
 * audit trail and an event for the payer's webhook, in one transaction. A card that the payer has replaced or removed meanwhile
 * says nothing about the next payment.
 * @returns whether they are paused now; undefined if the payment had ended before.
 */
export async function recordFailure(
  database: Database,
  { paymentId, organizationId, paymentMethodId, mils }: ClaimedPayment,
  { failure, topupUrl }: { failure: Failure; topupUrl: string },
): Promise<{ isPaused: boolean } | undefined> {
  const { reason, paymentIntentId, isFinal } = failure;
  return inTransaction(database, async (transaction) => {
    const settings = await lockAutoTopup(transaction, organizationId);
    if (!(await fail(transaction, paymentId, reason, paymentIntentId))) return undefined;
    const { rows } = await transaction.query(
      "update auto_topups set failures = failures + 1 where organization_id = $1 and payment_method_id = $2 returning failures",
      [organizationId, paymentMethodId],
    );
    const failures = rows[0] && valueOf(z.number(), rows[0]);
    await recordAudit(transaction, {
      actor,
      action: "auto_topup.failed",
      organizationId,
      subject: paymentId,
      after: { mils, reason, failures },
    });
    if (failures === undefined) return { isPaused: false };
    const isPaused = settings?.isOn === true && (isFinal || failures >= failuresMax);
    if (isPaused) await pause(transaction, { actor, organizationId }, { paymentId, mils }, { reason, topupUrl });
    else
      await transaction.query(
        "update auto_topups set next_payment_at = now() + make_interval(secs => $2) where organization_id = $1",
        [organizationId, pausesSeconds[failures - 1] ?? pausesSeconds.at(-1)],
      );
    return { isPaused };
  });
}

/**
 * Ends a payment that Stripe does not know and that must not be made, because the payer changed the settings or added credit
 * meanwhile, or because it had all its attempts. This is not a failure.
 */
export async function recordCancelled(
  database: Database,
  { paymentId, organizationId }: ClaimedPayment,
): Promise<void> {
  await inTransaction(database, async (transaction) => {
    await lockAutoTopup(transaction, organizationId);
    await fail(transaction, paymentId, "cancelled", undefined);
  });
}

/** Pauses automatic top-ups because Stripe gave no answer in all attempts. The payment stays open. @returns whether it did. */
export async function pauseUnanswered(
  database: Database,
  { organizationId, paymentId, mils }: ClaimedPayment,
  topupUrl: string,
): Promise<boolean> {
  return inTransaction(database, async (transaction) => {
    const settings = await lockAutoTopup(transaction, organizationId);
    if (!settings?.isOn || settings.paused) return false;
    const why = { reason: "payments_unavailable", topupUrl } as const;
    await pause(transaction, { actor, organizationId }, { paymentId, mils }, why);
    return true;
  });
}

const paymentRow = rowOf({ organizationId: z.string(), paymentId: z.string(), mils: z.number() });
/** A payment of a payer: an automatic one, or one that a person made, with the id of its PaymentIntent. */
export type PayersPayment = z.infer<typeof paymentRow>;

/** Finds the automatic top-up that made a payment at Stripe. */
export async function findAutomaticPayment(
  database: Database,
  paymentIntentId: string,
): Promise<PayersPayment | undefined> {
  const { rows } = await database.query(
    "select organization_id, id as payment_id, mils from auto_topup_payments where payment_intent_id = $1",
    [paymentIntentId],
  );
  return rows[0] && paymentRow.parse(rows[0]);
}

/**
 * Pauses automatic top-ups because a payment of their payer was disputed. A payment pauses them once, however often Stripe sends its
 * event: the payer may have switched them on again since.
 * @returns whether this call paused them.
 */
export async function pauseDisputed(
  database: Database,
  { organizationId, ...payment }: PayersPayment,
  { topupUrl, ...by }: { actor: Actor; requestId: string; topupUrl: string },
): Promise<boolean> {
  return inTransaction(database, async (transaction) => {
    const settings = await lockAutoTopup(transaction, organizationId);
    const isPaused =
      settings?.isOn === true && !settings.paused && !(await hasPaused(transaction, organizationId, payment.paymentId));
    if (isPaused) await pause(transaction, { ...by, organizationId }, payment, { reason: "disputed", topupUrl });
    return isPaused;
  });
}

/** Whether a dispute of this payment has paused automatic top-ups before, by the audit trail, which keeps it. */
async function hasPaused(transaction: Querying, organizationId: string, paymentId: string): Promise<boolean> {
  const { rows } = await transaction.query(
    `select from audit_entries where organization_id = $1 and action = 'auto_topup.paused' and subject = $2
       and after->>'reason' = 'disputed'`,
    [organizationId, paymentId],
  );
  return rows.length > 0;
}

async function fail(transaction: Querying, paymentId: string, why: string, intent: string | undefined) {
  const { rows } = await transaction.query("select fail_auto_topup($1, $2, $3) as failed", [paymentId, intent, why]);
  return valueOf(z.boolean(), rows[0]);
}

async function pause(
  transaction: Querying,
  changer: Changer,
  { paymentId, mils }: { paymentId: string; mils: number },
  { reason, topupUrl }: { reason: FailureReason; topupUrl: string },
): Promise<void> {
  const { organizationId } = changer;
  await transaction.query("update auto_topups set paused_at = now(), pause_reason = $2 where organization_id = $1", [
    organizationId,
    reason,
  ]);
  await recordAudit(transaction, { ...changer, action: "auto_topup.paused", subject: paymentId, after: { reason } });
  const data = { reason, amountMils: mils, topupUrl };
  await recordEvent(transaction, organizationId, { type: "auto_topup.paused", data });
}
