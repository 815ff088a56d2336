import type { Request, Response } from "express";
import { z } from "zod";
import type { Context } from "../../shared/process/context.ts";
import { CallerError } from "../../shared/errors.ts";
import { creditCheckoutSession } from "./stripe.ts";
import { organizationOf, type PaymentOutcome, publishTopup } from "./credit-payment.ts";
import { creditPaymentIntent } from "./credit-payment-intent.ts";
import { findAutomaticPayment, pauseDisputed } from "../auto-topups/payment-failures.ts";
import { orPostgresUnavailable } from "../datastore-unavailable.ts";
import { unavailable } from "../errors.ts";
import { readBytes } from "../http/read-json.ts";
import { type LogFields, requestScopeOf } from "../http/request-scope.ts";
import { sendJson } from "../http/send-json.ts";
import { isCardSession } from "./save-card.ts";
import type { AutoTopups } from "./auto-topups.ts";
import type { Topups } from "./topups.ts";

// Stripe's events have a few kilobytes.
const eventBytesMax = 64 * 1024;
const retryAfterMs = 60_000;
const acknowledgement = JSON.stringify({ received: true });

// The id is stored, so it must have no character that Postgres cannot store.
const stripeEvent = z.object({
  id: z.string().regex(/^evt_\w{1,250}$/),
  type: z.string(),
  livemode: z.boolean(),
  data: z.object({ object: z.unknown() }),
});
type StripeEvent = z.infer<typeof stripeEvent>;

type WebhookContext = Pick<Context, "config" | "database" | "redis" | "log" | "metrics">;

/**
 * POST /stripe/webhook: events from Stripe. A 200 stops Stripe from sending the event again, so it acknowledges every event
 * that was processed or does not concern this service. A payment that could not be credited is never acknowledged: Stripe
 * retries for three days, in which the operator can fix the cause, and a session is never credited twice.
 */
export function handleStripeWebhook(context: WebhookContext, topups: Topups, autoTopups: AutoTopups) {
  return async (request: Request, response: Response) => {
    const { logFields, requestId } = requestScopeOf(response);
    const [signature = "", ...others] = request.headersDistinct["stripe-signature"] ?? [];
    // Before the body is read: it costs nothing to send many large ones.
    if (signature === "" || others.length > 0) throw unsigned(context, logFields, "missing");
    const body = await readBytes(request, eventBytesMax);
    // Before anything of the body is read.
    const problem = topups.signatureProblem(body, signature);
    if (problem) throw unsigned(context, logFields, problem);
    const event = readEvent(body);
    Object.assign(logFields, { event: event.id, eventType: event.type });
    const outcome = await orPostgresUnavailable(handleEvent(context, { topups, autoTopups }, { event, requestId }));
    logFields.outcome = outcome;
    if (outcome === "unknown_organization" || outcome === "unusable") {
      throw unavailable("topup_not_credited", retryAfterMs);
    }
    sendJson(request, response, 200, acknowledgement);
  };
}

function readEvent(body: Buffer): StripeEvent {
  const read = stripeEvent.safeParse(JSON.parse(body.toString()));
  if (read.success) return read.data;
  const paths = read.error.issues.map(({ path }) => path.join("."));
  const message = "Expected an event with the id evt_…, a type, livemode and data.object, as Stripe sends it.";
  throw new CallerError("bad_request", { issues: paths.map((path) => ({ path, message })) });
}

/** Refuses an event. The log says why; who sent it is not told. */
function unsigned({ metrics }: WebhookContext, logFields: LogFields, signature: LogFields["signature"]): CallerError {
  metrics.topups.inc({ outcome: signature === "missing" ? "unsigned" : "signature_refused" });
  Object.assign(logFields, { signature });
  return new CallerError("bad_request", { reason: "signature_invalid" });
}

/** @returns the outcome, which is the metric's label. */
async function handleEvent(
  context: WebhookContext,
  { topups, autoTopups }: { topups: Topups; autoTopups: AutoTopups },
  { event, requestId }: { event: StripeEvent; requestId: string },
): Promise<string> {
  const { object } = event.data;
  if (event.livemode !== topups.isLive) return ignore(context);
  const credited = async (credit: typeof creditCheckoutSession): Promise<PaymentOutcome["outcome"]> => {
    const actor = { kind: "stripe", eventId: event.id } as const;
    const outcome = await credit(context, object, { actor, requestId, isRefunded: topups.isRefunded });
    await publishTopup(context, outcome);
    return outcome.outcome;
  };
  switch (event.type) {
    // The first arrives when the person has finished, the second when the money arrives later, as with bank debits.
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
      if (isCardSession(object)) return autoTopups.saveCard(object, { eventId: event.id, requestId });
      return credited(creditCheckoutSession);
    // Of every payment; those of sessions count as foreign here, because their sessions are credited.
    case "payment_intent.succeeded":
      return credited(creditPaymentIntent);
    case "charge.refunded":
    case "charge.dispute.created":
      return reportMoneyBack(context, topups, { event, requestId });
    default:
      return ignore(context);
  }
}

function ignore({ metrics }: Pick<WebhookContext, "metrics">): string {
  metrics.topups.inc({ outcome: "ignored" });
  return "ignored";
}

const returnedPayment = z.object({
  id: z.string(),
  payment_intent: z.string().nullish(),
  charge: z.string().nullish(),
});

/**
 * Logs a refund or dispute at Stripe for the operator, who decides what to do. Credit that was added for the payment stays,
 * because some of it may be spent; credit not yet added is not added after a full refund. A dispute does not carry our metadata,
 * so every dispute of the Stripe account is logged. One of a payment of ours pauses the automatic top-ups of its payer: a disputed
 * charge costs a fee, and the bank watches how many there are.
 */
async function reportMoneyBack(
  { config, database, log, metrics }: WebhookContext,
  topups: Topups,
  { event: { id, type, data }, requestId }: { event: StripeEvent; requestId: string },
): Promise<string> {
  const organizationId = organizationOf(data.object);
  if (type === "charge.refunded" && organizationId === undefined) return ignore({ metrics });
  const outcome = type === "charge.refunded" ? "refunded" : "disputed";
  const returned = returnedPayment.safeParse(data.object).data;
  const by = { actor: { kind: "stripe", eventId: id }, requestId, topupUrl: config.TOPUP_URL } as const;
  // Counted first: the operator is alerted also if Stripe does not answer now and sends the event again.
  metrics.topups.inc({ outcome });
  const intentId = outcome === "disputed" ? returned?.payment_intent : undefined;
  const payment = intentId
    ? ((await findAutomaticPayment(database, intentId)) ?? (await topups.findDisputed(intentId)))
    : undefined;
  const isPaused = payment && (await pauseDisputed(database, payment, by));
  if (isPaused) metrics.autoTopups.inc({ outcome: "paused" });
  log.warn(
    { event: id, organizationId: organizationId ?? payment?.organizationId, isPaused, ...returned },
    `a payment was ${outcome} at Stripe; its credit was not removed`,
  );
  return outcome;
}
