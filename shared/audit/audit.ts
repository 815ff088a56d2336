import { isDeepStrictEqual } from "node:util";
import type { Querying } from "../database/transaction.ts";

/**
 * The audit trail in Postgres: what operators, accounts, Stripe and automatic top-ups did. It is append only: Postgres refuses every change, and
 * processes may only insert and read. Entries have ids, numbers and terms. They never have the name of an organization or
 * a token, a keyword, a token or its hash, because they stay when the organization is erased.
 */

export const auditActions = [
  "organization.created",
  "organization.renamed",
  "organization.suspended",
  "organization.resumed",
  "organization.exported",
  "organization.erased",
  "plan.set",
  "plan.assigned",
  "token.issued",
  "token.revoked",
  "limit.set",
  "credit.granted",
  "credit.corrected",
  "credit.topped_up",
  "auto_topup.set",
  "auto_topup.card_saved",
  "auto_topup.card_removed",
  "auto_topup.failed",
  "auto_topup.paused",
  "low_balance.set",
  "webhook.set",
  "webhook.removed",
  "webhook.secret_replaced",
  "webhook.tested",
  "webhook.replayed",
  "session.opened",
  "session.closed",
  "locations.refreshed",
  "locations.removed",
  "search.raw_read",
  "search.shown",
] as const;
export type AuditAction = (typeof auditActions)[number];

/** Who acts, and from where. */
export type Actor =
  /** By one of the commands: the operator's name, and the host on which the command runs. */
  | { kind: "operator"; name: string; host: string }
  /** By a token of the organization of the entry, on the billing page: the token's id and the caller's address. */
  | { kind: "account"; tokenId: string; address: string | undefined }
  /** By an event that Stripe signed. */
  | { kind: "stripe"; eventId: string }
  /** By the service itself: the name of what it does in the background. */
  | { kind: "service"; name: string };

/** JSON. Dates become ISO 8601 texts in UTC. */
type Values = Readonly<Record<string, string | number | boolean | Date | readonly string[] | null>>;

export interface AuditEntry {
  action: AuditAction;
  organizationId?: string | undefined;
  /** What it was done to, if that is not the organization: the id of a token, grant, search, webhook or event, a plan's code, a provider. */
  subject?: string | undefined;
  /** What was changed, as it was before; null if it did not exist. */
  before?: Values | null | undefined;
  /** And as it is now. */
  after?: Values | null | undefined;
  /** Of the request to the API that did it. */
  requestId?: string | undefined;
}

/**
 * Records one action, in the transaction of that action: if the process dies before the commit, there is neither, and after it
 * both. An action outside of Postgres is recorded first, so that at worst an entry stands for an attempt. An action that
 * left everything as it was, such as a repeat, is no entry.
 * @throws if Postgres refuses it. Then the action must not happen.
 */
export async function recordAudit(transaction: Querying, actor: Actor, entry: AuditEntry): Promise<void> {
  const { action, organizationId, subject, before, after, requestId } = entry;
  if (before && isDeepStrictEqual(before, after)) return;
  const { id, origin } = identityOf(actor);
  await transaction.query(
    `insert into audit_entries (actor_kind, actor, origin, action, organization_id, subject, before, after, request_id)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [actor.kind, id, origin, action, organizationId, subject, toJson(before), toJson(after), requestId],
  );
}

function identityOf(actor: Actor): { id: string; origin: string | undefined } {
  if (actor.kind === "operator") return { id: actor.name, origin: actor.host };
  if (actor.kind === "account") return { id: actor.tokenId, origin: actor.address };
  if (actor.kind === "service") return { id: actor.name, origin: undefined };
  return { id: actor.eventId, origin: undefined };
}

const toJson = (values: Values | null | undefined) => (values ? JSON.stringify(values) : null);

/** Deletes entries of sign-ins and sign-outs that are older than 90 days, oldest first. Postgres allows no other deletion. */
export async function clearOldSignIns(database: Querying, limit: number): Promise<void> {
  await database.query("select clear_old_sign_ins($1)", [limit]);
}
