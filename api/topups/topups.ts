import type { Stripe } from "stripe";
import { z } from "zod";
import type { Context } from "../../shared/process/context.ts";
import { CallerError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { beginSession, checkoutMetadata, openStripe, stripeErrorFields, stripeRetryAfterMs } from "./stripe.ts";
import { milsPerCent, organizationOf } from "./credit-payment.ts";
import { paymentIdOf } from "./credit-payment-intent.ts";
import type { PayersPayment } from "../auto-topups/payment-failures.ts";
import { unavailable } from "../errors.ts";
import { dollars } from "../pages/format.ts";

const milsPerUsd = 1_000;
// Stripe signs the time of sending. An older event was recorded and is being replayed.
const signatureAgeSecondsMax = 300;
const anyAge = 0;

/** What is paid for. The name is for the person on Stripe's page; the id gets the credit. */
interface Payment {
  organizationId: string;
  organizationName: string;
  mils: number;
}

/**
 * - `no_match`: the body is not from Stripe, or was signed with another secret.
 * - `too_old`: Stripe signed it, but longer ago: it is replayed, or our clock is ahead.
 */
type SignatureProblem = "no_match" | "too_old";

/** Top-ups through Stripe Checkout. */
export interface Topups {
  /** The amounts on offer, in the operator's order. No other amount can be paid. */
  amountsMils: readonly number[];
  /**
   * Begins a payment for an organization that the caller of this function has authenticated. Stripe sends the browser back
   * to `returnPath` with `?topup=paid&payment=` and the session's id, or `?topup=cancelled`. That proves nothing: the credit
   * arrives with the webhook.
   * @returns the page of Stripe where the person pays.
   * @throws {CallerError} `bad_request` for an amount that is not on offer; `unavailable` if Stripe is down, refuses, or
   * returns a page outside of `checkoutOrigin`.
   */
  begin: (wanted: Payment & { returnPath: string }) => Promise<{ url: string }>;
  /** Finds Stripe's receipt of a payment that was credited. @throws {CallerError} as {@link findReceipt}. */
  findReceipt: (grantId: string) => Promise<{ url: string }>;
  /** Finds a payment of ours by its PaymentIntent. @throws {CallerError} as {@link findIntent}. */
  findDisputed: (paymentIntentId: string) => Promise<PayersPayment | undefined>;
  /** Whether a payment that an event reports was refunded since. @param grantId as of {@link findPayment}. */
  isRefunded: (grantId: string) => Promise<boolean>;
  /** What is wrong with the signature of an event; undefined if Stripe signed it in the last five minutes. */
  signatureProblem: (body: Buffer, signature: string) => SignatureProblem | undefined;
  /** The origin of Stripe's payment page, which the policy of our own pages must allow as a form's target. */
  checkoutOrigin: string;
  /** Whether payments are real. Then events of test payments are ignored; otherwise events of real payments are. */
  isLive: boolean;
}

type TopupContext = Pick<Context, "config" | "log" | "metrics">;

/**
 * Opens top-ups, or returns undefined if the operator has set no Stripe key.
 * @param attemptTimeoutMs the time limit of one attempt to call Stripe; by default that of {@link openStripe}.
 */
export async function openTopups(context: TopupContext, attemptTimeoutMs?: number): Promise<Topups | undefined> {
  const {
    STRIPE_SECRET_KEY: key,
    STRIPE_WEBHOOK_SECRET: secret,
    PUBLIC_URL: publicUrl,
    TOPUP_AMOUNTS_USD,
  } = context.config;
  const stripe = await openStripe(context.config, attemptTimeoutMs);
  if (!stripe || !key || !secret || !publicUrl) return undefined;
  const amountsMils = TOPUP_AMOUNTS_USD.map((usd) => usd * milsPerUsd);
  return {
    amountsMils,
    begin: async (wanted) => {
      if (!amountsMils.includes(wanted.mils)) {
        throw new CallerError("bad_request", { reason: "amount_not_offered", offeredMils: amountsMils });
      }
      return begin(context, stripe, wanted, publicUrl + wanted.returnPath);
    },
    findReceipt: (grantId) => findReceipt(context, stripe, grantId),
    findDisputed: (paymentIntentId) => findIntent(context, stripe, paymentIntentId),
    isRefunded: (grantId) => isRefunded(context, stripe, grantId),
    signatureProblem: (body, signature) => {
      const isSigned = (ageSecondsMax: number) => isSignedWith(stripe, secret, { body, signature, ageSecondsMax });
      if (isSigned(signatureAgeSecondsMax)) return undefined;
      return isSigned(anyAge) ? "too_old" : "no_match";
    },
    checkoutOrigin: context.config.STRIPE_CHECKOUT_ORIGIN,
    isLive: !key.includes("_test_"),
  };
}

function isSignedWith(
  stripe: Stripe,
  secret: string,
  { body, signature, ageSecondsMax }: { body: Buffer; signature: string; ageSecondsMax: number },
): boolean {
  try {
    return stripe.webhooks.signature?.verifyHeader(body, signature, secret, ageSecondsMax) ?? false;
  } catch {
    return false;
  }
}

async function begin(
  context: TopupContext,
  stripe: Stripe,
  payment: Payment,
  returnUrl: string,
): Promise<{ url: string }> {
  const { organizationId, mils } = payment;
  const options = { organizationId, reason: "payments_unavailable", failure: "Stripe did not begin a top-up" } as const;
  const { sessionId, url } = await beginSession(context, options, () => createSession(stripe, payment, returnUrl));
  context.metrics.topups.inc({ outcome: "begun" });
  context.log.info({ organizationId, sessionId, mils }, "top-up begun");
  return { url };
}

function createSession(stripe: Stripe, payment: Payment, returnUrl: string) {
  const { organizationId, organizationName, mils } = payment;
  const metadata = checkoutMetadata(organizationId, mils);
  return stripe.checkout.sessions.create(
    {
      mode: "payment",
      client_reference_id: organizationId,
      metadata,
      payment_intent_data: { metadata },
      // A payment in another currency would not convert to a whole number of mils.
      adaptive_pricing: { enabled: false },
      line_items: [
        {
          quantity: 1,
          price_data: {
            currency: "usd",
            unit_amount: mils / milsPerCent,
            product_data: {
              name: `Credit of ${dollars(mils)}`,
              description: `For ${organizationName} (${organizationId})`,
            },
          },
        },
      ],
      // Stripe writes the id of the session in its place.
      success_url: `${returnUrl}?topup=paid&payment={CHECKOUT_SESSION_ID}`,
      cancel_url: `${returnUrl}?topup=cancelled`,
    },
    // The SDK retries a request whose answer was lost. Under one key Stripe creates one session for both.
    { idempotencyKey: newId("topup") },
  );
}

/** Stripe's receipts are at pay.stripe.com. The browser is sent to no other site. */
const receiptHosts = /(^|\.)stripe\.com$/;

const paid = z.object({ latest_charge: z.object({ receipt_url: z.url({ protocol: /^https$/ }) }) });
const paidSession = z.object({ payment_intent: z.unknown() });

/**
 * Finds Stripe's receipt of a payment by the id of its grant: the `receipt_url` of the latest charge of a Checkout Session
 * (`cs_…`) or of a PaymentIntent (`pi_…`). Stripe keeps the receipt current, refunds included. Its address expires, so we ask
 * each time and store it nowhere.
 * @throws {CallerError} `not_found`, reason `no_receipt`, if Stripe has none; `unavailable` if Stripe is down or refuses.
 */
async function findReceipt({ log }: Pick<Context, "log">, stripe: Stripe, grantId: string): Promise<{ url: string }> {
  const payment = await findPayment(stripe, grantId).catch((error: unknown) => {
    const fields = stripeErrorFields(error);
    if (fields.statusCode === 404) throw new CallerError("not_found", { reason: "no_receipt" });
    log.error({ grantId, ...fields }, "Stripe did not return a receipt");
    throw unavailable("payments_unavailable", stripeRetryAfterMs);
  });
  const url = paid.safeParse(payment).data?.latest_charge.receipt_url;
  if (url === undefined || !receiptHosts.test(new URL(url).hostname))
    throw new CallerError("not_found", { reason: "no_receipt" });
  return { url };
}

/** Finds the PaymentIntent of a Checkout Session (`cs_…`), or a PaymentIntent (`pi_…`), with its latest charge. */
async function findPayment(stripe: Stripe, grantId: string): Promise<unknown> {
  if (grantId.startsWith("pi_")) return stripe.paymentIntents.retrieve(grantId, { expand: ["latest_charge"] });
  const session = await stripe.checkout.sessions.retrieve(grantId, { expand: ["payment_intent.latest_charge"] });
  return paidSession.safeParse(session).data?.payment_intent;
}

const refunded = z.object({ latest_charge: z.object({ refunded: z.literal(true) }) });

/** Whether Stripe has refunded a payment in full. Without an answer it counts as paid: its event is from Stripe, and says so. */
async function isRefunded({ log }: Pick<Context, "log">, stripe: Stripe, grantId: string): Promise<boolean> {
  const payment = await findPayment(stripe, grantId).catch((error: unknown) => {
    log.warn(
      { grantId, ...stripeErrorFields(error) },
      "Stripe did not say whether a payment was refunded before its credit",
    );
    return undefined;
  });
  return refunded.safeParse(payment).success;
}

const anyIntent = z.object({ amount: z.int() });

/**
 * Finds whose payment a PaymentIntent is, by its metadata.
 * @returns undefined if it is not ours.
 * @throws {CallerError} `unavailable` if Stripe is down or refuses.
 */
async function findIntent({ log }: Pick<Context, "log">, stripe: Stripe, paymentIntentId: string) {
  const intent = await stripe.paymentIntents.retrieve(paymentIntentId).catch((error: unknown) => {
    const fields = stripeErrorFields(error);
    if (fields.statusCode === 404) return undefined;
    log.error({ paymentIntentId, ...fields }, "Stripe did not say whose payment was disputed");
    throw unavailable("payments_unavailable", stripeRetryAfterMs);
  });
  const organizationId = organizationOf(intent);
  if (organizationId === undefined) return undefined;
  // The row of an automatic top-up may not have its PaymentIntent yet.
  const paymentId = paymentIdOf(intent) ?? paymentIntentId;
  return { organizationId, paymentId, mils: anyIntent.parse(intent).amount * milsPerCent };
}
