import { type Actor, recordAudit } from "../../shared/audit/audit.ts";
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
  const { actor, organizationId, requestId } = changer;
  const before = { thresholdMils: await setThreshold(transaction, organizationId, mils) };
  const after = { thresholdMils: mils };
  await recordAudit(transaction, actor, { action: "low_balance.set", organizationId, before, after, requestId });
}

/** Sets the webhook to a URL that was checked. @returns the secret if this is the organization's first webhook. */
export async function changeWebhook(
  transaction: Querying,
  { actor, organizationId, requestId }: Changer,
  url: string,
): Promise<string | undefined> {
  const changed = await setWebhook(transaction, organizationId, url);
  if (!changed) return undefined;
  const { oldWebhookId, webhookId, secret } = changed;
  await recordAudit(transaction, actor, {
    action: "webhook.set",
    organizationId,
    before: { webhookId: oldWebhookId },
    after: { webhookId },
    requestId,
  });
  return secret;
}

/** @returns whether there was a webhook to remove. */
export async function dropWebhook(
  transaction: Querying,
  { actor, organizationId, requestId }: Changer,
): Promise<boolean> {
  const webhookId = await removeWebhook(transaction, organizationId);
  if (webhookId === undefined) return false;
  const values = { before: { webhookId }, after: { webhookId: null } };
  await recordAudit(transaction, actor, { action: "webhook.removed", organizationId, ...values, requestId });
  return true;
}

/** @returns the new secret; undefined if there is no webhook. */
export async function changeSecret(
  transaction: Querying,
  { actor, organizationId, requestId }: Changer,
): Promise<string | undefined> {
  const replaced = await replaceSecret(transaction, organizationId);
  if (!replaced) return undefined;
  const subject = replaced.webhookId;
  await recordAudit(transaction, actor, { action: "webhook.secret_replaced", organizationId, subject, requestId });
  return replaced.secret;
}

/** Records an event of the type `webhook.test`. @returns its id, or why there is none. */
export async function testWebhook(
  transaction: Querying,
  { actor, organizationId, requestId }: Changer,
): Promise<{ eventId: string } | "none" | "too_many"> {
  const recorded = await recordEvent(transaction, organizationId, { type: "webhook.test", data: {} });
  if (typeof recorded === "string") return recorded;
  const subject = recorded.eventId;
  await recordAudit(transaction, actor, { action: "webhook.tested", organizationId, subject, requestId });
  return recorded;
}

/**
 * Sends an event again.
 * @param changer.organizationId whose event it must be; undefined for an operator, who may name any.
 * @returns the event; `no_webhook` if there is nowhere to send it; undefined if there is no such event.
 */
export async function replayWebhookEvent(
  transaction: Querying,
  changer: Omit<Changer, "organizationId"> & { organizationId: string | undefined },
  eventId: string,
): Promise<WebhookEvent | "no_webhook" | undefined> {
  const replayed = await replayEvent(transaction, eventId, changer.organizationId);
  if (!replayed || replayed === "no_webhook") return replayed;
  const { before, after } = replayed;
  await recordAudit(transaction, changer.actor, {
    action: "webhook.replayed",
    organizationId: after.organizationId,
    subject: eventId,
    before: { state: before.state, attempts: before.attempts },
    after: { state: after.state, attempts: after.attempts },
    requestId: changer.requestId,
  });
  return after;
}
