import { type Changer, recordAudit } from "../../shared/audit/audit.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { type AutoTopupTerms, lockAutoTopup, type SavedCard } from "./auto-topup.ts";
import { askToDelete } from "./stripe-deletions.ts";

/**
 * Changes of automatic top-ups by payers and operators. Each is one transaction with its entry in the audit trail. Entries have
 * the ids of cards and never their last digits.
 */

/** Sets the terms and switches automatic top-ups on. It also ends a pause. @returns `on`, or why nothing was changed. */
export async function switchOn(
  transaction: Querying,
  changer: Changer,
  terms: AutoTopupTerms,
): Promise<"on" | "no_card"> {
  const { organizationId } = changer;
  const known = await lockAutoTopup(transaction, organizationId);
  if (!known?.card) return "no_card";
  const { thresholdMils, amountMils, ceilingMils } = terms;
  const columns = "is_on = true, threshold_mils = $2, amount_mils = $3, ceiling_mils = $4";
  await change(transaction, organizationId, columns, thresholdMils, amountMils, ceilingMils);
  const before = { isOn: known.isOn, isPaused: known.paused !== undefined, ...known.terms };
  const after = { isOn: true, isPaused: false, ...terms };
  await recordAudit(transaction, { ...changer, action: "auto_topup.set", before, after });
  return "on";
}

/** Why an operator switches automatic top-ups off. The audit trail has no text of people, so it is one of these. */
export const switchOffReasons = ["disputed", "payer_asked", "suspected_fraud", "other"] as const;
export type SwitchOffReason = (typeof switchOffReasons)[number];

/**
 * Switches automatic top-ups off. The card and the terms stay. A payment that Stripe is being asked for may still be made.
 * @param reason only if an operator does it. @returns whether they were on.
 */
export async function switchOff(transaction: Querying, changer: Changer, reason?: SwitchOffReason): Promise<boolean> {
  const { organizationId } = changer;
  const known = await lockAutoTopup(transaction, organizationId);
  if (!known?.isOn) return false;
  await change(transaction, organizationId, "is_on = false");
  const values = { before: { isOn: true }, after: { isOn: false, reason } };
  await recordAudit(transaction, { ...changer, action: "auto_topup.set", ...values });
  return true;
}

/** Removes the card here, switches automatic top-ups off, and has the card deleted at Stripe. */
export async function removeCard(transaction: Querying, changer: Changer): Promise<void> {
  const { organizationId } = changer;
  const known = await lockAutoTopup(transaction, organizationId);
  if (!known?.card) return;
  const { paymentMethodId } = known.card;
  const columns = "is_on = false, payment_method_id = null, card_brand = null, card_last4 = null, card_expires = null";
  await change(transaction, organizationId, columns);
  await askToDelete(transaction, paymentMethodId);
  const values = { before: { isOn: known.isOn, paymentMethodId }, after: { isOn: false, paymentMethodId: null } };
  await recordAudit(transaction, { ...changer, action: "auto_topup.card_removed", ...values });
}

/**
 * Saves a card that is attached to the organization's customer at Stripe. The one before is deleted there. A new card ends a
 * pause. Stripe's events come in any order, so a card that is older than the newest one known is not saved, and is deleted.
 * @returns whether it is the saved card now. False also if the organization has another customer, or none.
 */
export async function saveCard(
  transaction: Querying,
  changer: Changer,
  { customerId, card, enteredAt }: { customerId: string; card: SavedCard; enteredAt: Date },
): Promise<boolean> {
  const { organizationId } = changer;
  const known = await lockAutoTopup(transaction, organizationId);
  if (known?.customerId !== customerId) return false;
  const { paymentMethodId, brand, last4, expires } = card;
  const before = known.card?.paymentMethodId;
  if (before === paymentMethodId) return true;
  if (known.cardEnteredAt && enteredAt <= known.cardEnteredAt) {
    await askToDelete(transaction, paymentMethodId);
    return false;
  }
  const columns = "payment_method_id = $2, card_brand = $3, card_last4 = $4, card_expires = $5, card_entered_at = $6";
  await change(transaction, organizationId, columns, paymentMethodId, brand, last4, expires, enteredAt);
  if (before !== undefined) await askToDelete(transaction, before);
  const values = { before: { paymentMethodId: before ?? null }, after: { paymentMethodId } };
  await recordAudit(transaction, { ...changer, action: "auto_topup.card_saved", ...values });
  return true;
}

/**
 * Sets these columns. Every change also resets the failures, ends a pause, and allows the next payment at once: an open one is
 * looked at within two minutes.
 */
async function change(transaction: Querying, organizationId: string, columns: string, ...values: unknown[]) {
  await transaction.query(
    `update auto_topups set ${columns}, failures = 0, next_payment_at = now(), paused_at = null, pause_reason = null
     where organization_id = $1`,
    [organizationId, ...values],
  );
  await transaction.query("select hasten_auto_topup($1)", [organizationId]);
}
