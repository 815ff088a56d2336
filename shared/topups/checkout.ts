import { z } from "zod";
import type { Context } from "../context.ts";
import { grantRefusal } from "../credits/ledger.ts";
import { type Topup, topUp } from "../credits/topup.ts";

/**
 * A Checkout Session of Stripe, from the side that matters here: who gets how much credit for it, and that it is credited
 * once. Its id is the id of the grant, which the ledger takes once. So it does not matter how often, in which order or by
 * whom a session is brought here.
 */

export const milsPerCent = 10;
const organizationKey = "serpmill_organization";
const milsKey = "serpmill_mils";

/** What we write on a session, and on the payment that it leads to, so that both can be told from an operator's others. */
export function checkoutMetadata(organizationId: string, mils: number): Record<string, string> {
  return { [organizationKey]: organizationId, [milsKey]: String(mils) };
}

const ours = z.object({ metadata: z.object({ [organizationKey]: z.string() }) });

/** The organization that we wrote on an object of Stripe, or undefined on one that is not ours. */
export function organizationOf(object: unknown): string | undefined {
  return ours.safeParse(object).data?.metadata[organizationKey];
}

const paidSession = z.object({
  id: z.string().regex(/^cs_\w{1,250}$/),
  object: z.literal("checkout.session"),
  // What was really paid decides. We asked for dollars, and for no conversion of currencies.
  currency: z.literal("usd"),
  amount_total: z.int().min(1).max(99_999_999),
  metadata: z.object({ [milsKey]: z.string().optional() }),
});
// Stripe tells of the payment only where it was asked to; its events have the id alone.
const refundedSession = z.object({
  payment_intent: z.object({ latest_charge: z.object({ refunded: z.literal(true) }) }),
});
const anySession = z.object({ id: z.string().optional(), payment_status: z.string().optional() });

/** What a session came to. The last two were paid for and not credited: somebody has to look. */
export type CheckoutOutcome =
  | { outcome: "credited" | "repeated"; organizationId: string; sessionId: string; mils: number; topup: Topup }
  | { outcome: "foreign" | "unpaid" | "refunded" }
  | { outcome: "unknown_organization" | "unusable"; sessionId: string | undefined; reason?: string };

/** Credits a session that is ours and paid. What Stripe says of it has to come from Stripe: nothing here is a proof. */
export async function creditCheckoutSession(context: Context, session: unknown): Promise<CheckoutOutcome> {
  const outcome = await decide(context, session);
  const { log, metrics } = context;
  metrics.topups.inc({ outcome: outcome.outcome });
  if (outcome.outcome === "credited") {
    const { topup, ...told } = outcome;
    metrics.topupMils.inc(told.mils);
    log.info({ ...told, planChanged: topup.planChanged }, "topped up");
  }
  if ("sessionId" in outcome && !("topup" in outcome)) {
    log.error({ ...outcome, organizationId: organizationOf(session) }, "a paid top-up could not be credited");
  }
  return outcome;
}

async function decide({ database, log }: Context, session: unknown): Promise<CheckoutOutcome> {
  const organizationId = organizationOf(session);
  if (organizationId === undefined) return { outcome: "foreign" };
  const { id: sessionId, payment_status: status } = anySession.safeParse(session).data ?? {};
  if (status !== "paid") return { outcome: "unpaid" };
  if (refundedSession.safeParse(session).success) return { outcome: "refunded" };
  const read = paidSession.safeParse(session);
  if (!read.success) return { outcome: "unusable", sessionId };
  const { id, amount_total: cents, metadata } = read.data;
  const mils = cents * milsPerCent;
  if (metadata[milsKey] !== String(mils)) {
    log.warn(
      { organizationId, sessionId: id, mils, begunMils: metadata[milsKey] },
      "another amount was paid than begun",
    );
  }
  const topup = await topUp(database, { organizationId, grantId: id, mils }).catch(refusalOf);
  if (typeof topup === "string") return { outcome: "unusable", sessionId: id, reason: topup };
  if (!topup) return { outcome: "unknown_organization", sessionId: id };
  return { outcome: topup.fresh ? "credited" : "repeated", organizationId, sessionId: id, mils, topup };
}

/** A refusal by the ledger is told with its session, and stops nobody else's; whatever else goes wrong is thrown. */
function refusalOf(error: unknown): string {
  const refusal = grantRefusal(error);
  if (refusal === undefined) throw error;
  return refusal;
}
