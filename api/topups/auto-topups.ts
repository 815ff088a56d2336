import type { Context } from "../../shared/process/context.ts";
import { openStripe } from "./stripe.ts";
import { startStripeDeletions } from "./delete-at-stripe.ts";
import { startPayments } from "./make-payments.ts";
import { beginCard, type CardHolder, saveCardOfSession } from "./save-card.ts";

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
  startPayments(context, stripe);
  startStripeDeletions(context, stripe);
  return {
    beginCard: ({ returnPath, ...holder }) =>
      beginCard(context, stripe, { ...holder, returnUrl: publicUrl + returnPath }),
    saveCard: (session, event) => saveCardOfSession(context, stripe, session, event),
  };
}
