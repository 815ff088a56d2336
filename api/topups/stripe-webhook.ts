import type { Request, Response } from "express";
import { z } from "zod";
import { storeBalance } from "../../shared/credits/holds.ts";
import { isTransient } from "../../shared/database/failures.ts";
import { CallerError } from "../../shared/errors.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { creditCheckoutSession, type CheckoutOutcome, organizationOf } from "../../shared/topups/checkout.ts";
import type { ApiContext } from "../context.ts";
import { unavailable } from "../errors.ts";
import { requestScopeOf } from "../http/request-scope.ts";
import { readBytes } from "../http/read-json.ts";
import { sendJson } from "../http/send-json.ts";
import type { Topups } from "./topups.ts";

// Stripe's events have some kilobytes.
const eventBytesMax = 256 * 1024;
const retryAfterMs = 60_000;
const received = JSON.stringify({ received: true });

const signedEvent = z.object({
  id: z.string(),
  type: z.string(),
  livemode: z.boolean(),
  data: z.object({ object: z.unknown() }),
});
type SignedEvent = z.infer<typeof signedEvent>;

/**
 * POST /stripe/webhook: what Stripe tells. 200 means that it need not be told again, so it is the answer to all that is
 * done and to all that is none of ours. A payment that could not be credited is never acknowledged: Stripe tells it again
 * for three days, in which whoever looks after this can mend the cause, and nothing is credited twice.
 */
export function handleStripeWebhook(context: ApiContext, topups: Topups) {
  return async (request: Request, response: Response) => {
    const { logFields: notes } = requestScopeOf(response);
    const event = readEvent(context, topups, await readBytes(request, eventBytesMax), request);
    Object.assign(notes, { event: event.id, eventType: event.type });
    const outcome = await take(context, topups, event).catch((error: unknown) => {
      if (isTransient(error)) throw unavailable("postgres_unreachable");
      throw error;
    });
    notes.outcome = outcome;
    if (outcome === "unknown_organization" || outcome === "unusable") {
      throw unavailable("topup_not_credited", retryAfterMs);
    }
    sendJson(request, response, 200, received);
  };
}

/** Nothing of the body is looked at before its signature is found right. */
function readEvent(context: ApiContext, topups: Topups, body: Buffer, request: Request): SignedEvent {
  const signatures = request.headersDistinct["stripe-signature"] ?? [];
  let event: unknown;
  try {
    if (signatures.length !== 1) throw new Error("one signature is expected");
    event = topups.readEvent(body, signatures[0] ?? "");
  } catch {
    context.metrics.topups.inc({ outcome: "unsigned" });
    throw new CallerError("bad_request", { reason: "signature_invalid" });
  }
  return signedEvent.parse(event);
}

async function take(context: ApiContext, topups: Topups, event: SignedEvent): Promise<string> {
  const { object } = event.data;
  if (event.livemode !== topups.isLive) return ignore(context);
  switch (event.type) {
    // The first comes when the person is done, the second when the money comes later, as with bank debits.
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded": {
      const outcome = await creditCheckoutSession(context, object);
      await tell(context, outcome);
      return outcome.outcome;
    }
    case "charge.refunded":
    case "charge.dispute.created":
      return note(context, event);
    default:
      return ignore(context);
  }
}

function ignore({ metrics }: ApiContext): string {
  metrics.topups.inc({ outcome: "ignored" });
  return "ignored";
}

/** Tells Redis the new balance, and every API the new plan. Both find out by themselves, only later. */
async function tell({ redis, log }: ApiContext, outcome: CheckoutOutcome): Promise<void> {
  if (!("topup" in outcome)) return;
  const { organizationId, topup } = outcome;
  await storeBalance(redis, organizationId, topup.balance)
    .then(() => (topup.planChanged ? publishIdentityChange(redis) : undefined))
    .catch((error: unknown) => log.warn({ err: error, organizationId }, "Redis was not told of a top-up"));
}

const takenBack = z.object({ id: z.string(), payment_intent: z.string().nullish(), charge: z.string().nullish() });

/**
 * Money that went back at Stripe. Credit that was added for it stays, since some of it may be spent, and credit that was
 * not yet is added when the payment is told: what to do about it is the operator's decision. A dispute does not carry what
 * we wrote on the payment, so all of the account's are told.
 */
function note(context: ApiContext, { id, type, data }: SignedEvent): string {
  const organizationId = organizationOf(data.object);
  if (type === "charge.refunded" && organizationId === undefined) return ignore(context);
  const outcome = type === "charge.refunded" ? "refunded" : "disputed";
  context.metrics.topups.inc({ outcome });
  context.log.warn(
    { event: id, organizationId, ...takenBack.safeParse(data.object).data },
    `a payment was ${outcome} at Stripe, which takes no credit back`,
  );
  return outcome;
}
