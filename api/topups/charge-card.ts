import type { Stripe } from "stripe";
import { z } from "zod";
import type { FailureReason } from "../auto-topups/auto-topup.ts";
import type { Failure } from "../auto-topups/payment-failures.ts";
import type { ClaimedPayment } from "../auto-topups/payments.ts";
import { dollars } from "../pages/format.ts";
import { milsPerCent } from "./credit-payment.ts";
import { paymentIdOf, paymentMetadata } from "./credit-payment-intent.ts";
import { stripeErrorFields } from "./stripe.ts";

/** The calls to Stripe for one payment of an automatic top-up, and what their answers mean. */

// A bank may take long to answer. The SDK does not retry: our next attempt first looks whether this one was made.
const callOptions = { timeout: 30_000, maxNetworkRetries: 0 };
/** The clocks of Stripe and Postgres may differ by so much. */
const clockSkewSeconds = 3_600;
const intentsMax = 100;

/**
 * What Stripe says about a payment.
 * - `paid`: with the PaymentIntent.
 * - `declined`: not charged, and it never will be; or the operator has refunded it since.
 * - `unknown`: no answer, or one that does not say whether the card was charged, or the bank has not decided yet.
 */
type ChargeAnswer =
  | { answer: "paid"; intent: unknown }
  | ({ answer: "declined" } & Failure)
  | { answer: "unknown"; logFields: object };

/**
 * Charges the card. Stripe makes one payment for all calls under one key, for at least 24 hours. It repeats an error of its own
 * as long: the payment has another key then, and {@link findCharge} has found that the first one charged nothing.
 */
export async function chargeCard(stripe: Stripe, payment: ClaimedPayment): Promise<ChargeAnswer> {
  const { paymentId, attempts } = payment;
  try {
    const charging = createIntent(stripe, payment, paymentId).catch((error: unknown) => {
      if (!repeatedError.safeParse(error).success) throw error;
      return createIntent(stripe, payment, `${paymentId}_${attempts}`);
    });
    return answerOf(await charging);
  } catch (error) {
    return answerOfError(error);
  }
}

const repeatedError = z.object({
  statusCode: z.int().min(500),
  headers: z.object({ "idempotent-replayed": z.literal("true") }),
});

function createIntent(stripe: Stripe, payment: ClaimedPayment, idempotencyKey: string) {
  return stripe.paymentIntents.create(
    {
      amount: payment.mils / milsPerCent,
      currency: "usd",
      customer: payment.customerId,
      payment_method: payment.paymentMethodId,
      allowed_payment_method_types: ["card"],
      confirm: true,
      // The payer is not there, so Stripe declines what would need them, and never waits for them.
      off_session: true,
      description: `Credit of ${dollars(payment.mils)}, automatic top-up`,
      metadata: paymentMetadata(payment),
    },
    { ...callOptions, idempotencyKey },
  );
}

/**
 * Asks Stripe for a payment that may have been made. It does not repeat the call under the Idempotency-Key: Stripe forgets keys,
 * repeats an error 500 under a key, and would charge a card that was not charged yet.
 * @returns `absent` if Stripe knows of no such payment.
 */
export async function findCharge(
  stripe: Stripe,
  payment: ClaimedPayment,
): Promise<ChargeAnswer | { answer: "absent" }> {
  try {
    const since = Math.floor(payment.askedAt.getTime() / 1_000) - clockSkewSeconds;
    const { data } = await stripe.paymentIntents.list(
      { customer: payment.customerId, created: { gte: since }, limit: intentsMax, expand: ["data.latest_charge"] },
      callOptions,
    );
    const intent = data.find((listed) => paymentIdOf(listed) === payment.paymentId);
    return intent ? answerOf(intent) : { answer: "absent" };
  } catch (error) {
    const logFields = stripeErrorFields(error);
    // A customer that was deleted at Stripe takes no payments any more.
    return logFields.code === "resource_missing" ? { answer: "absent" } : { answer: "unknown", logFields };
  }
}

const decline = z.object({ code: z.string().nullish(), decline_code: z.string().nullish() });
const anyIntent = z.object({
  id: z.string(),
  status: z.string(),
  last_payment_error: decline.nullish(),
  latest_charge: z.union([z.string(), z.object({ refunded: z.boolean() })]).nullish(),
});

function answerOf(intent: unknown): ChargeAnswer {
  const { id, status, last_payment_error: error, latest_charge: charge } = anyIntent.parse(intent);
  if (status === "succeeded" && typeof charge === "object" && charge?.refunded)
    return { answer: "declined", reason: "refunded", isFinal: true, paymentIntentId: id };
  if (status === "succeeded") return { answer: "paid", intent };
  if (status === "processing") return { answer: "unknown", logFields: { paymentIntentId: id, status } };
  // It waits for another card or for the payer, and neither comes. Without them Stripe does not charge it.
  const waiting = status === "requires_action" ? { code: "authentication_required" } : (error ?? {});
  return { answer: "declined", ...failureOf(waiting), paymentIntentId: id };
}

const cardError = decline.extend({
  type: z.literal("StripeCardError"),
  payment_intent: z.object({ id: z.string() }).optional(),
});

function answerOfError(error: unknown): ChargeAnswer {
  const declined = cardError.safeParse(error).data;
  if (declined) return { answer: "declined", ...failureOf(declined), paymentIntentId: declined.payment_intent?.id };
  const logFields = stripeErrorFields(error);
  const { statusCode, code, type } = logFields;
  const isRefused = (statusCode === 400 || statusCode === 404) && type === "StripeInvalidRequestError";
  if (!isRefused) return { answer: "unknown", logFields };
  // Removed at Stripe, such as by the operator. Anything else is wrong with the request, and no repeat helps.
  const reason = code === "resource_missing" || code?.startsWith("payment_method") ? "card_unusable" : "refused";
  return { answer: "declined", reason, isFinal: true, paymentIntentId: undefined };
}

const reasonsOfCodes: Record<string, FailureReason> = {
  insufficient_funds: "insufficient_funds",
  expired_card: "expired_card",
  authentication_required: "authentication_required",
};
/** Banks always decline these, and card networks forbid further attempts. */
const finalCodes = new Set([
  "expired_card",
  "lost_card",
  "stolen_card",
  "pickup_card",
  "restricted_card",
  "invalid_account",
  "revocation_of_authorization",
  "revocation_of_all_authorizations",
  "stop_payment_order",
]);

function failureOf({ code, decline_code: declineCode }: z.infer<typeof decline>) {
  const codes = [declineCode ?? "", code ?? ""];
  const reason = codes.flatMap((each) => reasonsOfCodes[each] ?? [])[0] ?? "card_declined";
  return { reason, isFinal: codes.some((each) => finalCodes.has(each)) };
}
