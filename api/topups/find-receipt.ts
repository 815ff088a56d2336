import type { Stripe } from "stripe";
import { z } from "zod";
import type { Context } from "../../shared/process/context.ts";
import { CallerError } from "../../shared/errors.ts";
import { stripeErrorFields } from "./stripe.ts";
import { unavailable } from "../errors.ts";

const retryAfterMs = 5_000;
/** Stripe's receipts are at pay.stripe.com. The browser is sent to no other site. */
const receiptHosts = /(^|\.)stripe\.com$/;

const paid = z.object({ latest_charge: z.object({ receipt_url: z.url({ protocol: /^https$/ }) }) });
const paidSession = z.object({ payment_intent: paid });

/**
 * Finds Stripe's receipt of a payment, by the id of its grant: the `receipt_url` of the latest charge of a Checkout Session (`cs_…`)
 * or of a PaymentIntent (`pi_…`). Stripe keeps the receipt current, refunds included. Its address expires, so it is asked for
 * each time and stored nowhere.
 * @throws {CallerError} `not_found`, reason `no_receipt`, if Stripe has none; `unavailable` if Stripe is down or refuses.
 */
export async function findReceipt(
  { log }: Pick<Context, "log">,
  stripe: Stripe,
  grantId: string,
): Promise<{ url: string }> {
  const payment = await findPayment(stripe, grantId).catch((error: unknown) => {
    const fields = stripeErrorFields(error);
    if (fields.statusCode === 404) throw new CallerError("not_found", { reason: "no_receipt" });
    log.error({ grantId, ...fields }, "Stripe did not return a receipt");
    throw unavailable("payments_unavailable", retryAfterMs);
  });
  const url = paid.safeParse(payment).data?.latest_charge.receipt_url;
  if (url === undefined || !receiptHosts.test(new URL(url).hostname))
    throw new CallerError("not_found", { reason: "no_receipt" });
  return { url };
}

async function findPayment(stripe: Stripe, grantId: string): Promise<unknown> {
  if (grantId.startsWith("pi_")) return stripe.paymentIntents.retrieve(grantId, { expand: ["latest_charge"] });
  const session = await stripe.checkout.sessions.retrieve(grantId, { expand: ["payment_intent.latest_charge"] });
  return paidSession.safeParse(session).data?.payment_intent;
}
