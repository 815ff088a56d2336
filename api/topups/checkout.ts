import { z } from "zod";
import type { Context } from "../../shared/process/context.ts";
import { type Bringer, creditPayment, milsPerCent, type PaymentOutcome, reportPayment } from "./credit-payment.ts";

/**
 * Credits Stripe Checkout Sessions. The id of a session is the id of its grant, which the ledger accepts once. So a session
 * may arrive any number of times, in any order, from the webhook and from `credit topups-check`.
 */

const organizationKey = "serpmill_organization";
const milsKey = "serpmill_mils";

/** The metadata that marks an object at Stripe as ours: an operator's Stripe account may have others. */
export function ownerMetadata(organizationId: string): Record<string, string> {
  return { [organizationKey]: organizationId };
}

/** The metadata of a session and of a payment. */
export function checkoutMetadata(organizationId: string, mils: number): Record<string, string> {
  return { ...ownerMetadata(organizationId), [milsKey]: String(mils) };
}

const ownObject = z.object({ metadata: z.object({ [organizationKey]: z.string().regex(/^org_[0-7][0-9a-z]{25}$/) }) });

/** The organization in the metadata of an object from Stripe, or undefined if the object is not ours. */
export function organizationOf(object: unknown): string | undefined {
  return ownObject.safeParse(object).data?.metadata[organizationKey];
}

const paidSession = z.object({
  id: z.string().regex(/^cs_\w{1,250}$/),
  object: z.literal("checkout.session"),
  // The amount that was paid decides. We asked for dollars, without conversion from another currency.
  currency: z.literal("usd"),
  amount_total: z.int().min(1).max(99_999_999),
  metadata: z.object({ [milsKey]: z.string().optional() }),
});
// Stripe includes the payment only if the request asks for it. Events carry its id alone.
const refundedSession = z.object({
  payment_intent: z.object({ latest_charge: z.object({ refunded: z.literal(true) }) }),
});
const anySession = z.object({ id: z.string().optional(), payment_status: z.string().optional() });

/** Credits a session if it is ours and paid. The session must come from Stripe itself: nothing is verified here. */
export async function creditCheckoutSession(
  context: Pick<Context, "database" | "log" | "metrics">,
  session: unknown,
  bringer: Bringer,
): Promise<PaymentOutcome> {
  const outcome = await decide(context, session, bringer);
  reportPayment(context, outcome, organizationOf(session));
  return outcome;
}

async function decide(
  { database, log }: Pick<Context, "database" | "log">,
  session: unknown,
  bringer: Bringer,
): Promise<PaymentOutcome> {
  const organizationId = organizationOf(session);
  if (organizationId === undefined) return { outcome: "foreign" };
  const { id: sessionId, payment_status: status } = anySession.safeParse(session).data ?? {};
  if (status !== "paid") return { outcome: "unpaid" };
  if (refundedSession.safeParse(session).success) return { outcome: "refunded" };
  const paid = paidSession.safeParse(session);
  if (!paid.success) return { outcome: "unusable", grantId: sessionId };
  const { id, amount_total: cents, metadata } = paid.data;
  const mils = cents * milsPerCent;
  if (metadata[milsKey] !== String(mils)) {
    log.warn(
      { organizationId, sessionId: id, mils, begunMils: metadata[milsKey] },
      "the amount paid differs from the amount begun",
    );
  }
  return creditPayment({ database }, { organizationId, grantId: id, mils }, bringer);
}
