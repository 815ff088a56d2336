import type { AutoTopup, FailureReason } from "../../../shared/auto-topups/auto-topup.ts";

/** What the page says about automatic top-ups. */

const done = {
  on: "Automatic top-up is on.",
  off: "Automatic top-up is off. Your card is still saved.",
  card_removed: "Your card is removed, and automatic top-up is off.",
  card_cancelled: "No card was saved.",
  no_card: "Save a card first. Nothing was changed.",
};
const messages = new Map<unknown, string>(Object.entries(done));

/** What a form leads back with. */
export type Done = keyof typeof done;

/** The message for the address that a form or Stripe's page led back to. Only Stripe's webhook proves that a card was saved. */
export function messageOf(what: unknown, autoTopup: AutoTopup | undefined): string | undefined {
  if (what !== "card_saved") return messages.get(what);
  return autoTopup?.card
    ? "Your card is saved."
    : "Stripe has not confirmed your card yet. It appears here within some seconds: load the page again.";
}

/** Why automatic top-ups are paused, and what the payer can do. */
export const pauseMessages: Record<FailureReason, string> = {
  card_declined: "The bank declined your card. Ask your bank, or save another card.",
  insufficient_funds: "Your card has too little money. Try again later, or save another card.",
  expired_card: "Your card has expired. Save another card.",
  authentication_required:
    "The bank wants you to confirm each payment, so this card cannot be charged without you. Save another card, or add credit by hand.",
  card_unusable: "Stripe does not have your card any more. Save it again.",
  refused: "Stripe refused the payment. The operator of this service can tell you more.",
  payments_unavailable:
    "Stripe gave no answer for hours. If the last payment was made after all, its credit is added once Stripe answers.",
};
