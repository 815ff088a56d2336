import { z } from "zod";
import { idForm } from "../../shared/ids.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { crediting, milsPerCent, organizationOf, unixSeconds } from "./credit-payment.ts";
import { checkoutMetadata } from "./stripe.ts";

/**
 * Credits PaymentIntents of automatic top-ups. The id of a PaymentIntent is the id of its grant, which the ledger accepts once.
 * So it may arrive any number of times: from the process that charged the card, from Stripe's webhook, and from
 * `credit topups-check`. Checkout Sessions are credited as sessions, so their PaymentIntents are not credited here.
 */

const paymentKey = "serpmill_auto_topup";

/** The metadata that marks a PaymentIntent as that of a payment of ours. */
export function paymentMetadata(payment: { organizationId: string; paymentId: string; mils: number }) {
  return { ...checkoutMetadata(payment.organizationId, payment.mils), [paymentKey]: payment.paymentId };
}

const ownIntent = z.object({ metadata: z.object({ [paymentKey]: z.string().regex(idForm("pay")) }) });

/** The id of the payment in the metadata of a PaymentIntent; undefined if it is not that of an automatic top-up. */
export function paymentIdOf(intent: unknown): string | undefined {
  return ownIntent.safeParse(intent).data?.metadata[paymentKey];
}

const paidIntent = z.object({
  id: z.string().regex(/^pi_\w{1,250}$/),
  object: z.literal("payment_intent"),
  currency: z.literal("usd"),
  amount_received: z.int().min(1).max(99_999_999),
  created: unixSeconds,
});
// Events carry the id of the charge alone.
const refundedIntent = z.object({ latest_charge: z.object({ refunded: z.literal(true) }) });
const anyIntent = z.object({ id: z.string().optional(), status: z.string().optional() });

/** Credits a PaymentIntent. */
export const creditPaymentIntent = crediting((intent) => {
  const [organizationId, paymentId] = [organizationOf(intent), paymentIdOf(intent)];
  if (organizationId === undefined || paymentId === undefined) return { outcome: "foreign" };
  const { id: grantId, status } = anyIntent.safeParse(intent).data ?? {};
  if (status !== "succeeded") return { outcome: "unpaid" };
  if (refundedIntent.safeParse(intent).success) return { outcome: "refunded" };
  const paid = paidIntent.safeParse(intent);
  if (!paid.success) return { outcome: "unusable", grantId };
  const { id, amount_received: cents, created } = paid.data;
  const mils = cents * milsPerCent;
  const record = async (transaction: Querying) => {
    const values = [organizationId, paymentId, id, mils, new Date(created * 1_000)];
    await transaction.query("select pay_auto_topup($1, $2, $3, $4, $5)", values);
  };
  return { organizationId, grantId: id, mils, record };
});
