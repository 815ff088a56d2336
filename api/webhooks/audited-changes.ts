import { type Actor, recordChange } from "../../shared/audit/audit.ts";
import type { Querying } from "../../shared/database/transaction.ts";
import { setThreshold } from "../../shared/webhooks/low-balance.ts";
import { recordEvent, replayEvent, type WebhookEvent } from "../../shared/webhooks/webhook-events.ts";
import { removeWebhook, replaceSecret, setWebhook } from "../../shared/webhooks/webhooks.ts";

/**
 * Changes of thresholds and webhooks by accounts and operators. Each is one transaction with its entry in the audit trail.
 * Entries have the ids of webhooks and events, and never an address or a secret.
 */

/** Who makes a change, of which organization, and in which request to the API, if any. */
export interface Changer {
  actor: Actor;
  organizationId: string;
  requestId?: string | undefined;
}

/** Sets the threshold in mils; null removes it. */
export async function changeThreshold(transaction: Querying, changer: Changer, mils: number | null): Promise<void> {
  const before = { thresholdMils: await setThreshold(transaction, changer.organizationId, mils) };
  await recordChange(transaction, changer, "low_balance.set", { before, after: { thresholdMils: mils } });
}

/** Sets the webhook to a URL that was checked. @returns the secret if this is the organization's first webhook. */
export async function changeWebhook(transaction: Querying, changer: Changer, url: string): Promise<string | undefined> {
  const changed = await setWebhook(transaction, changer.organizationId, url);
  if (!changed) return undefined;
  const { oldWebhookId, webhookId, secret } = changed;
  const values = { before: { webhookId: oldWebhookId }, after: { webhookId } };
  await recordChange(transaction, changer, "webhook.set", values);
  return secret;
}

/** @returns whether there was a webhook to remove. */
export async function dropWebhook(transaction: Querying, changer: Changer): Promise<boolean> {
  const webhookId = await removeWebhook(transaction, changer.organizationId);
  if (webhookId === undefined) return false;
  const values = { before: { webhookId }, after: { webhookId: null } };
  await recordChange(transaction, changer, "webhook.removed", values);
  return true;
}

/** @returns the new secret; undefined if there is no webhook. */
export async function changeSecret(transaction: Querying, changer: Changer): Promise<string | undefined> {
  const replaced = await replaceSecret(transaction, changer.organizationId);
  if (!replaced) return undefined;
  await recordChange(transaction, changer, "webhook.secret_replaced", { subject: replaced.webhookId });
  return replaced.secret;
}

/** Records an event of the type `webhook.test`. @returns its id, or why there is none. */
export async function testWebhook(
  transaction: Querying,
  changer: Changer,
): Promise<{ eventId: string } | "none" | "too_many"> {
  const recorded = await recordEvent(transaction, changer.organizationId, { type: "webhook.test", data: {} });
  if (typeof recorded === "string") return recorded;
  await recordChange(transaction, changer, "webhook.tested", { subject: recorded.eventId });
  return recorded;
}

/**
 * Sends an event again.
 * @param changer.organizationId whose event it must be; undefined for an operator, who may name any.
 * @returns the event; `no_webhook` if there is nowhere to send it; undefined if there is no such event.
 */
export async function replayWebhookEvent(
  transaction: Querying,
  { organizationId: owner, ...changer }: Omit<Changer, "organizationId"> & { organizationId: string | undefined },
  eventId: string,
): Promise<WebhookEvent | "no_webhook" | undefined> {
  const replayed = await replayEvent(transaction, eventId, owner);
  if (!replayed || replayed === "no_webhook") return replayed;
  const { before, after } = replayed;
  const sending = ({ state, attempts }: WebhookEvent) => ({ state, attempts });
  const values = { subject: eventId, before: sending(before), after: sending(after) };
  await recordChange(transaction, { ...changer, organizationId: after.organizationId }, "webhook.replayed", values);
  return after;
}
