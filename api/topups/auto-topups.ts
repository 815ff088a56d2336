import type { Stripe } from "stripe";
import type { Context } from "../../shared/process/context.ts";
import { openStripe, stripeErrorFields } from "./stripe.ts";
import { startAutoTopups } from "./run-auto-topups.ts";
import { beginCard, type CardHolder, saveCardOfSession } from "./save-card.ts";
import { claimDeletions, recordDeletion } from "../auto-topups/stripe-deletions.ts";
import { runPeriodically } from "../../shared/concurrency/run-periodically.ts";

const deletionPauseMs = 5_000;
const deletionsPerRun = 5;

/** Automatic top-ups: a saved card that is charged while the balance is low. */
export interface AutoTopups {
  /**
   * Begins to save a card. Stripe sends the browser back to `returnPath`.
   * @returns the page of Stripe where the person enters the card. @throws {CallerError} as {@link beginCard}.
   */
  beginCard: (holder: Omit<CardHolder, "returnUrl"> & { returnPath: string }) => Promise<{ url: string }>;
  /** Saves the card of a session that Stripe completed. @throws {CallerError} as {@link saveCardOfSession}. */
  saveCard: (session: unknown, event: { eventId: string; requestId: string }) => Promise<string>;
}

/** Opens automatic top-ups and starts their work in the background; undefined if the operator has set no Stripe key. */
export async function openAutoTopups(context: Context): Promise<AutoTopups | undefined> {
  const { PUBLIC_URL: publicUrl } = context.config;
  const stripe = await openStripe(context.config);
  if (!stripe || !publicUrl) return undefined;
  startAutoTopups(context, stripe);
  startStripeDeletions(context, stripe);
  return {
    beginCard: ({ returnPath, ...holder }) =>
      beginCard(context, stripe, { ...holder, returnUrl: publicUrl + returnPath }),
    saveCard: (session, event) => saveCardOfSession(context, stripe, session, event),
  };
}

/** Has Stripe delete the cards and customers that payers and operators removed here. */
function startStripeDeletions(
  { database, log, metrics, shutdown }: Pick<Context, "database" | "log" | "metrics" | "shutdown">,
  stripe: Stripe,
): void {
  const run = async () => {
    for (const { stripeId, attempts, isLast } of await claimDeletions(database, deletionsPerRun)) {
      const failed = await deleteAtStripe(stripe, stripeId);
      if (!failed) await recordDeletion(database, stripeId);
      else if (isLast)
        log.error({ stripeId, attempts, ...failed }, "Stripe did not delete this in all attempts: delete it there");
      else log.warn({ stripeId, attempts, ...failed }, "Stripe did not delete this yet");
    }
  };
  runPeriodically({ name: "stripe deletions", pauseMs: deletionPauseMs, run, log, metrics, shutdown });
}

/** @returns the fields of the error that may be logged; undefined if it is gone at Stripe. */
async function deleteAtStripe(stripe: Stripe, stripeId: string) {
  try {
    if (stripeId.startsWith("cus_")) await stripe.customers.del(stripeId);
    else await stripe.paymentMethods.detach(stripeId);
    return undefined;
  } catch (error) {
    const fields = stripeErrorFields(error);
    // It is not there any more, or is not attached to a customer and so cannot be charged.
    return fields.statusCode === 404 || fields.statusCode === 400 ? undefined : fields;
  }
}
