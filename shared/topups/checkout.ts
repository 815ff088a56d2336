import { z } from "zod";
import { type Actor, recordAudit } from "../audit/audit.ts";
import type { Context } from "../context.ts";
import { isErased } from "../organizations/organizations.ts";
import { grantRefusal } from "../credits/ledger.ts";
import { type Topup, topUp } from "../credits/topup.ts";
import type { Database } from "../database/pool.ts";
import { inTransaction } from "../database/transaction.ts";

/**
 * Credits Stripe Checkout Sessions. The id of a session is the id of its grant, which the ledger accepts once. So a session
 * may arrive any number of times, in any order, from the webhook and from `credit topups-check`.
 */

export const milsPerCent = 10;
const organizationKey = "serpmill_organization";
const milsKey = "serpmill_mils";

/** The metadata that marks a session and its payment as ours: an operator's Stripe account may have others. */
export function checkoutMetadata(organizationId: string, mils: number): Record<string, string> {
  return { [organizationKey]: organizationId, [milsKey]: String(mils) };
}

const ownObject = z.object({ metadata: z.object({ [organizationKey]: z.string() }) });

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

/**
 * The outcome of a session; each is a label of the metric `topups_total`.
 * - `credited`: added now; `repeated`: added before.
 * - `foreign`: not ours; `unpaid`: not paid yet; `refunded`: paid back at Stripe before it was credited.
 * - `unknown_organization`, `unusable`: paid but not credited. The operator has to look at these.
 */
export type CheckoutOutcome =
  | { outcome: "credited" | "repeated"; organizationId: string; sessionId: string; mils: number; topup: Topup }
  | { outcome: "foreign" | "unpaid" | "refunded" }
  | { outcome: "unknown_organization" | "unusable"; sessionId: string | undefined; reason?: string };

/** Who brings a session: Stripe by an event in a request, or an operator by a command. */
export interface Bringer {
  actor: Actor;
  requestId?: string;
}

/** Credits a session if it is ours and paid. The session must come from Stripe itself: nothing is verified here. */
export async function creditCheckoutSession(
  { database, log, metrics }: Pick<Context, "database" | "log" | "metrics">,
  session: unknown,
  bringer: Bringer,
): Promise<CheckoutOutcome> {
  const outcome = await decide({ database, log }, session, bringer);
  metrics.topups.inc({ outcome: outcome.outcome });
  if (outcome.outcome === "credited") {
    const { topup, ...logFields } = outcome;
    metrics.topupMils.inc(outcome.mils);
    log.info({ ...logFields, planChanged: topup.planChanged }, "top-up credited");
  }
  if ("sessionId" in outcome && !("topup" in outcome)) {
    log.error({ ...outcome, organizationId: organizationOf(session) }, "a paid top-up could not be credited");
  }
  return outcome;
}

async function decide(
  { database, log }: Pick<Context, "database" | "log">,
  session: unknown,
  bringer: Bringer,
): Promise<CheckoutOutcome> {
  const organizationId = organizationOf(session);
  if (organizationId === undefined) return { outcome: "foreign" };
  const { id: sessionId, payment_status: status } = anySession.safeParse(session).data ?? {};
  if (status !== "paid") return { outcome: "unpaid" };
  if (refundedSession.safeParse(session).success) return { outcome: "refunded" };
  const paid = paidSession.safeParse(session);
  if (!paid.success) return { outcome: "unusable", sessionId };
  const { id, amount_total: cents, metadata } = paid.data;
  const mils = cents * milsPerCent;
  if (metadata[milsKey] !== String(mils)) {
    log.warn(
      { organizationId, sessionId: id, mils, begunMils: metadata[milsKey] },
      "the amount paid differs from the amount begun",
    );
  }
  const topup = await creditRecorded(database, { organizationId, grantId: id, mils }, bringer).catch(
    grantRefusalOrThrow,
  );
  if (typeof topup === "string") return { outcome: "unusable", sessionId: id, reason: topup };
  if (!topup) return { outcome: "unknown_organization", sessionId: id };
  return { outcome: topup.fresh ? "credited" : "repeated", organizationId, sessionId: id, mils, topup };
}

/** Adds the credit and its entry in the audit trail in one transaction. A session that was credited before has its entry. */
async function creditRecorded(
  database: Database,
  paid: { organizationId: string; grantId: string; mils: number },
  { actor, requestId }: Bringer,
): Promise<Topup | undefined> {
  const { organizationId, grantId, mils } = paid;
  return inTransaction(database, async (transaction) => {
    // The operator has to pay it back at Stripe.
    if (await isErased(transaction, organizationId)) return undefined;
    const topup = await topUp(transaction, paid);
    if (!topup?.fresh) return topup;
    const { balance, planChanged } = topup;
    await recordAudit(transaction, actor, {
      action: "credit.topped_up",
      organizationId,
      subject: grantId,
      before: { balanceMils: balance.balanceMils - mils, ...(planChanged && { plan: "free" }) },
      after: { balanceMils: balance.balanceMils, ...(planChanged && { plan: "payg" }) },
      requestId,
    });
    return topup;
  });
}

/** The ledger's reason for refusing a grant. It belongs to this session alone, so the others go on. Throws other errors. */
function grantRefusalOrThrow(error: unknown): string {
  const refusal = grantRefusal(error);
  if (refusal === undefined) throw error;
  return refusal;
}
