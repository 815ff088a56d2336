import { createHmac, randomBytes } from "node:crypto";
import { z } from "zod";
import ipaddr from "ipaddr.js";
import { type Changer, recordAudit } from "../audit/audit.ts";
import { rowOf, valueOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";
import { newId } from "../ids.ts";
import type { Config } from "../config.ts";

/**
 * The webhooks of organizations. Secrets and signatures are those of Standard Webhooks, symmetric and in version 1:
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 * Each change is recorded in the audit trail by the ids of webhooks and events, and never with an address or a secret.
 */

const oldSecretHours = 24;
const secretPrefix = "whsec_";
const secretBytes = 32;

const webhookRow = rowOf({
  webhookId: z.string(),
  url: z.string(),
  createdAt: z.date(),
  /** Until then deliveries are also signed with the secret that was replaced last; null if there is none. */
  oldSecretEndsAt: z.date().nullable(),
});
/** The webhook of an organization: the address that gets its events. Each organization has one or none. */
export type Webhook = z.infer<typeof webhookRow>;

/** Reads the webhook of an organization, without its secret, which is shown only when it is made. */
export async function readWebhook(database: Querying, organizationId: string): Promise<Webhook | undefined> {
  const { rows } = await database.query(
    `select id as webhook_id, url, created_at, (select max(o.ends_at) from webhook_old_secrets o
       where o.organization_id = w.organization_id and o.ends_at > now()) as old_secret_ends_at
     from webhooks w where organization_id = $1`,
    [organizationId],
  );
  return rows[0] && webhookRow.parse(rows[0]);
}

/**
 * Sets the webhook of an organization to a URL that was checked. Events that wait go to the new address.
 * @returns the secret if this is the organization's first webhook. A change of the address keeps the secret.
 */
export async function setWebhook(transaction: Querying, changer: Changer, url: string): Promise<string | undefined> {
  const { organizationId } = changer;
  await takeTurn(transaction, organizationId);
  const known = await readWebhook(transaction, organizationId);
  if (known?.url === url) return undefined;
  const webhookId = newId("whk");
  const secret = newSecret();
  await transaction.query(
    `insert into webhooks (organization_id, id, url, secret) values ($1, $2, $3, $4)
     on conflict (organization_id) do update set id = excluded.id, url = excluded.url, created_at = now()`,
    [organizationId, webhookId, url, secret],
  );
  const values = { before: { webhookId: known?.webhookId ?? null }, after: { webhookId } };
  await recordAudit(transaction, { ...changer, action: "webhook.set", ...values });
  return known ? undefined : secret;
}

/**
 * Gives the webhook a new secret. For a day, deliveries are signed with the old one too. Those that were replaced before keep their
 * time: the one that the receiver has may be among them.
 * @returns the new secret; undefined if there is no webhook.
 */
export async function replaceSecret(transaction: Querying, changer: Changer): Promise<string | undefined> {
  const { organizationId } = changer;
  await takeTurn(transaction, organizationId);
  await transaction.query("delete from webhook_old_secrets where organization_id = $1 and ends_at <= now()", [
    organizationId,
  ]);
  await transaction.query(
    `insert into webhook_old_secrets (organization_id, secret, ends_at)
     select organization_id, secret, now() + make_interval(hours => $2) from webhooks where organization_id = $1`,
    [organizationId, oldSecretHours],
  );
  const secret = newSecret();
  const { rows } = await transaction.query("update webhooks set secret = $2 where organization_id = $1 returning id", [
    organizationId,
    secret,
  ]);
  if (!rows[0]) return undefined;
  await recordAudit(transaction, {
    ...changer,
    action: "webhook.secret_replaced",
    subject: valueOf(z.string(), rows[0]),
  });
  return secret;
}

/** Removes the webhook of an organization; events that wait are not sent any more. @returns whether there was one. */
export async function removeWebhook(transaction: Querying, changer: Changer): Promise<boolean> {
  const { organizationId } = changer;
  await takeTurn(transaction, organizationId);
  const { rows } = await transaction.query("delete from webhooks where organization_id = $1 returning id", [
    organizationId,
  ]);
  await transaction.query(
    "update webhook_events set next_attempt_at = null where organization_id = $1 and next_attempt_at is not null",
    [organizationId],
  );
  if (!rows[0]) return false;
  const values = { before: { webhookId: valueOf(z.string(), rows[0]) }, after: { webhookId: null } };
  await recordAudit(transaction, { ...changer, action: "webhook.removed", ...values });
  return true;
}

/** Deletes the threshold of an organization, its webhook with the secrets, and its events: in the order in which others lock them. */
export async function eraseWebhook(transaction: Querying, organizationId: string): Promise<void> {
  await transaction.query("delete from low_balance_thresholds where organization_id = $1", [organizationId]);
  await transaction.query("delete from webhooks where organization_id = $1", [organizationId]);
  await transaction.query("delete from webhook_events where organization_id = $1", [organizationId]);
}

/** Changes of one organization's webhook come one after the other. */
export async function takeTurn(transaction: Querying, organizationId: string): Promise<void> {
  await transaction.query("select pg_advisory_xact_lock(hashtextextended($1, 1))", [organizationId]);
}

/** A new secret, as payers see it. */
const newSecret = () => secretPrefix + randomBytes(secretBytes).toString("base64");

/** The signature of an event with a secret of {@link newSecret}. `sentAt` counts in whole seconds, as the header has it. */
export function signEvent(
  secret: string,
  { eventId, sentAt, body }: { eventId: string; sentAt: Date; body: string },
): string {
  const key = Buffer.from(secret.slice(secretPrefix.length), "base64");
  const seconds = Math.floor(sentAt.getTime() / 1_000);
  return `v1,${createHmac("sha256", key).update(`${eventId}.${seconds}.${body}`).digest("base64")}`;
}

/** Where webhooks may lead; a value of WEBHOOK_TARGETS. */
export type WebhookTargets = Config["WEBHOOK_TARGETS"];

const lengthMax = 2_000;
/** IPv6 addresses that are given out for the internet. All others are local, reserved, or hold an IPv4 address. */
const globalUnicast = ipaddr.IPv6.parse("2000::");

/**
 * Why a URL cannot be a webhook's, as a sentence for the payer; undefined if it can. A name may still lead to a private
 * address, which each delivery finds out for itself.
 */
export function targetProblem(text: string, targets: WebhookTargets): string | undefined {
  const url = URL.parse(text);
  if (targets === "none") return "The operator of this service has turned webhooks off.";
  if (url === null) return "Expected a URL such as https://example.com/hook.";
  if (url.href.length > lengthMax) return `Expected a URL of at most ${lengthMax} characters.`;
  if (url.protocol !== "https:" && !(targets === "any" && url.protocol === "http:"))
    return "Expected a URL that begins with https://.";
  if (url.username !== "" || url.password !== "") return "Expected a URL without a user name or password.";
  if (url.hash !== "") return "Expected a URL without a part behind #.";
  const address = addressIn(url);
  if (targets === "public" && address !== undefined && !isPublicAddress(address))
    return "Expected an address of the internet, and not of a private network.";
  return undefined;
}

/** The IP address that a URL has in place of a name. URLs write each notation of an IPv4 address in the usual one. */
export function addressIn({ hostname }: URL): string | undefined {
  const address = hostname.replace(/^\[|\]$/g, "");
  return ipaddr.isValid(address) ? address : undefined;
}

/** Whether an IP address is one of the internet: not private, loopback, link-local, multicast or reserved. */
export function isPublicAddress(address: string): boolean {
  if (!ipaddr.isValid(address)) return false;
  const parsed = ipaddr.process(address);
  if (parsed.range() !== "unicast") return false;
  if (parsed instanceof ipaddr.IPv6) return parsed.match(globalUnicast, 3);
  return !unlistedRanges.some(([range, bits]) => parsed.match(range, bits));
}

/** Ranges that the library counts as public: for measurements between networks (RFC 2544), and for relays (RFC 7526). */
const unlistedRanges = [
  [ipaddr.IPv4.parse("198.18.0.0"), 15],
  [ipaddr.IPv4.parse("192.88.99.0"), 24],
] as const;
