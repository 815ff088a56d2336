import type { Stripe } from "stripe";
import { z } from "zod";
import type { Context } from "../../shared/context.ts";
import { CallerError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { checkoutMetadata, milsPerCent } from "../../shared/topups/checkout.ts";
import { openStripe, stripeErrorFields } from "../../shared/topups/stripe.ts";
import { unavailable } from "../errors.ts";

const milsPerUsd = 1_000;
const retryAfterMs = 5_000;
// Stripe signs the moment of sending; what is older was recorded and is played again.
const signatureAgeSecondsMax = 300;

/** The way to more credit. */
export interface Topups {
  /** What is offered, in the operator's order. Nothing else can be begun. */
  amountsMils: readonly number[];
  /**
   * Begins a payment of this amount for this organization, whom the caller of this function has to have identified. People
   * come back to `returnPath` of our own address with `?topup=paid` or `?topup=cancelled`, which proves nothing: the credit
   * comes by itself, a moment after the payment.
   * @returns the page of Stripe to send the person to.
   * @throws {CallerError} `bad_request` for an amount that is not offered; `unavailable` where Stripe is away or refuses, or
   * has its page at another place than `checkoutOrigin`.
   */
  begin: (wanted: { organizationId: string; mils: number; returnPath: string }) => Promise<{ url: string }>;
  /** Reads an event that Stripe has signed lately. @throws for every other. */
  readEvent: (body: Buffer, signature: string) => unknown;
  /** Where that page is, which pages of ours have to allow as a place to go on to. */
  checkoutOrigin: string;
  /** Whether payments are real: a test's cards must not buy anything. */
  isLive: boolean;
}

/** Top-ups through Stripe Checkout, or undefined where the operator has set no key of Stripe. */
export async function openTopups(context: Context): Promise<Topups | undefined> {
  const {
    STRIPE_SECRET_KEY: key,
    STRIPE_WEBHOOK_SECRET: secret,
    PUBLIC_URL: publicUrl,
    TOPUP_AMOUNTS_USD,
  } = context.config;
  const stripe = await openStripe(context.config);
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
    readEvent: (body, signature) => stripe.webhooks.constructEvent(body, signature, secret, signatureAgeSecondsMax),
    checkoutOrigin: context.config.STRIPE_CHECKOUT_ORIGIN,
    isLive: !key.includes("_test_"),
  };
}

const begunSession = z.object({ id: z.string(), url: z.url() });

interface Wanted {
  organizationId: string;
  mils: number;
}

async function begin(context: Context, stripe: Stripe, wanted: Wanted, returnUrl: string): Promise<{ url: string }> {
  const { organizationId, mils } = wanted;
  const { id: sessionId, url } = await createSession(stripe, wanted, returnUrl).catch((error: unknown) => {
    throw notBegun(context, { organizationId, ...stripeErrorFields(error) }, "Stripe did not begin a top-up");
  });
  const { origin } = new URL(url);
  // A browser would stay where it is without a word: it follows a form of ours only to where our policy allows.
  if (origin !== context.config.STRIPE_CHECKOUT_ORIGIN) {
    const elsewhere = { organizationId, sessionId, origin };
    throw notBegun(context, elsewhere, "Stripe's page is at another origin: set STRIPE_CHECKOUT_ORIGIN to it");
  }
  context.metrics.topups.inc({ outcome: "begun" });
  context.log.info({ organizationId, sessionId, mils }, "a top-up was begun");
  return { url };
}

function notBegun({ log, metrics }: Context, told: object, sentence: string): CallerError {
  metrics.topups.inc({ outcome: "not_begun" });
  log.error(told, sentence);
  return unavailable("payments_unavailable", retryAfterMs);
}

async function createSession(stripe: Stripe, { organizationId, mils }: Wanted, returnUrl: string) {
  const metadata = checkoutMetadata(organizationId, mils);
  return begunSession.parse(
    await stripe.checkout.sessions.create(
      {
        mode: "payment",
        client_reference_id: organizationId,
        metadata,
        payment_intent_data: { metadata },
        // Whoever pays in another currency would pay an amount that is no whole number of mils.
        adaptive_pricing: { enabled: false },
        line_items: [
          {
            quantity: 1,
            price_data: {
              currency: "usd",
              unit_amount: mils / milsPerCent,
              product_data: { name: `${mils} credits` },
            },
          },
        ],
        success_url: `${returnUrl}?topup=paid`,
        cancel_url: `${returnUrl}?topup=cancelled`,
      },
      // The SDK sends a request again whose answer was lost; under one key Stripe makes one session of both.
      { idempotencyKey: newId("topup") },
    ),
  );
}
