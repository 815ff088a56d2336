import type { Stripe } from "stripe";
import { z } from "zod";
import { keepCustomer, readAutoTopup } from "../auto-topups/auto-topup.ts";
import { saveCard } from "../auto-topups/audited-changes.ts";
import type { Context } from "../../shared/process/context.ts";
import { inTransaction } from "../../shared/database/transaction.ts";
import { CallerError } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { organizationOf, ownerMetadata, unixSeconds } from "./credit-payment.ts";
import { beginSession, stripeErrorFields, stripeRetryAfterMs } from "./stripe.ts";
import { unavailable } from "../errors.ts";

/**
 * Saves a payer's card for automatic top-ups, by a Checkout Session in the mode `setup`. There the payer agrees that we charge
 * the card automatically. Only Stripe sees the number. The card arrives with the webhook, as credit does.
 */

/**
 * Who saves a card, and where the browser returns: with `?done=card_cancelled`, or with `?done=card_saved`, which proves nothing, and
 * in `replaces` the id of the card that was saved before.
 */
export interface CardHolder {
  organizationId: string;
  organizationName: string;
  returnUrl: string;
}

/** @returns the page of Stripe where the person enters the card. @throws {CallerError} `unavailable` if Stripe is down or refuses. */
export async function beginCard(
  context: Pick<Context, "config" | "database" | "log" | "metrics">,
  stripe: Stripe,
  holder: CardHolder,
): Promise<{ url: string }> {
  const { organizationId } = holder;
  const known = await readAutoTopup(context.database, organizationId);
  const options = {
    organizationId,
    reason: "card_unavailable",
    failure: "Stripe did not begin to save a card",
  } as const;
  const { sessionId, url } = await beginSession(context, options, async () => {
    const create = (goneId?: string) => createCustomer(stripe, context.database, holder, goneId);
    const customerId = known?.customerId ?? (await create());
    const asked = { ...holder, replaces: known?.card?.paymentMethodId };
    return createSession(stripe, customerId, asked).catch(async (error: unknown) => {
      // The customer was deleted at Stripe, or belongs to the account of other keys. Its card is gone with it.
      if (stripeErrorFields(error).code !== "resource_missing") throw error;
      return createSession(stripe, await create(customerId), asked);
    });
  });
  context.log.info({ organizationId, sessionId }, "card begun");
  return { url };
}

/**
 * If a second click created a customer meanwhile, that one is used.
 * @throws {CallerError} `unauthenticated` if the organization was erased meanwhile.
 */
async function createCustomer(
  stripe: Stripe,
  database: Context["database"],
  holder: CardHolder,
  goneId: string | undefined,
): Promise<string> {
  const { organizationId, organizationName: name } = holder;
  const created = await stripe.customers.create(
    { name, metadata: ownerMetadata(organizationId) },
    { idempotencyKey: newId("topup") },
  );
  const keptId = await keepCustomer(database, organizationId, created.id, goneId);
  if (keptId === undefined) throw new CallerError("unauthenticated");
  return keptId;
}

function createSession(stripe: Stripe, customer: string, asked: CardHolder & { replaces: string | undefined }) {
  const { organizationId, returnUrl, replaces } = asked;
  const metadata = ownerMetadata(organizationId);
  return stripe.checkout.sessions.create(
    {
      mode: "setup",
      customer,
      client_reference_id: organizationId,
      metadata,
      setup_intent_data: { metadata },
      // Other methods are paid days later, or not at all.
      allowed_payment_method_types: ["card"],
      success_url: `${returnUrl}?done=card_saved${replaces === undefined ? "" : `&replaces=${replaces}`}`,
      cancel_url: `${returnUrl}?done=card_cancelled`,
    },
    { idempotencyKey: newId("topup") },
  );
}

const setupSession = z.object({
  id: z.string(),
  mode: z.literal("setup"),
  status: z.literal("complete"),
  customer: z.string(),
  setup_intent: z.string().regex(/^seti_\w{1,250}$/),
});
const setupIntent = z.object({
  status: z.literal("succeeded"),
  payment_method: z.object({
    id: z.string().regex(/^pm_\w{1,250}$/),
    // Null once it was deleted. Then an event that Stripe repeats must not bring it back.
    customer: z.string().nullable(),
    created: unixSeconds,
    card: z.object({
      brand: z.string().max(50),
      last4: z.string().regex(/^\d{4}$/),
      exp_month: z.int(),
      exp_year: z.int(),
    }),
  }),
});

/** Whether a session saved a card, ours or not. */
export const isCardSession = (session: unknown) => setupSession.safeParse(session).success;

/**
 * Saves the card of a completed session of ours, as often as its event arrives.
 * @returns the outcome, a label of the metric `topups_total`: `card_saved`, or `ignored` for a card that is not ours, or was
 * replaced or removed since.
 * @throws {CallerError} `unavailable` if Stripe does not say which card it is; then it repeats the event.
 */
export async function saveCardOfSession(
  { database, log, metrics }: Pick<Context, "database" | "log" | "metrics">,
  stripe: Stripe,
  session: unknown,
  { eventId, requestId }: { eventId: string; requestId: string },
): Promise<"card_saved" | "ignored"> {
  const organizationId = organizationOf(session);
  const { customer: customerId, setup_intent: intentId, id: sessionId } = setupSession.parse(session);
  const found = organizationId === undefined ? undefined : await findCard(stripe, intentId, { log, sessionId });
  const isSaved =
    organizationId !== undefined &&
    found?.customer === customerId &&
    (await inTransaction(database, (transaction) =>
      saveCard(
        transaction,
        { actor: { kind: "stripe", eventId }, organizationId, requestId },
        { customerId, card: found.card, enteredAt: found.enteredAt },
      ),
    ));
  const outcome = isSaved ? "card_saved" : "ignored";
  metrics.topups.inc({ outcome });
  if (isSaved) log.info({ organizationId, sessionId }, "card saved");
  return outcome;
}

/** The card that was saved, and the customer it belongs to now; undefined if it is no card. */
async function findCard(
  stripe: Stripe,
  intentId: string,
  { log, sessionId }: { log: Context["log"]; sessionId: string },
) {
  const intent = await stripe.setupIntents
    .retrieve(intentId, { expand: ["payment_method"] })
    .catch((error: unknown) => {
      log.error({ sessionId, ...stripeErrorFields(error) }, "Stripe did not say which card was saved");
      throw unavailable("card_unavailable", stripeRetryAfterMs);
    });
  const read = setupIntent.safeParse(intent);
  if (!read.success) return undefined;
  const { id: paymentMethodId, customer, created, card } = read.data.payment_method;
  const { brand, last4, exp_month: month, exp_year: year } = card;
  const enteredAt = new Date(created * 1_000);
  return { customer, card: { paymentMethodId, brand, last4, expires: `${month}/${year}` }, enteredAt };
}
