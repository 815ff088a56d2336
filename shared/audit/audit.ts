import { isDeepStrictEqual } from "node:util";
import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { rowOf, valueOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";

/**
 * The audit trail in Postgres: what operators, accounts, Stripe and automatic top-ups did. It is append-only: Postgres refuses
 * every change, and processes may only insert and read. Entries have ids, numbers, terms and where the actor was. They never have
 * the name of an organization or token, a keyword, a token or its hash, because they outlive the organization.
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
  "token.rotated",
  "limit.set",
  "credit.granted",
  "credit.corrected",
  "credit.topped_up",
  "ledger.exported",
  "ledger.gap_found",
  "ledger.gap_closed",
  "auto_topup.set",
  "auto_topup.card_saved",
  "auto_topup.card_removed",
  "auto_topup.failed",
  "auto_topup.paused",
  "kept_answers.set",
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
  /** By one of the commands: the operator's name, and the host that runs it. */
  | { kind: "operator"; name: string; host: string }
  /** By a token of the organization of the entry, on the account pages: the token's id and the caller's address. */
  | { kind: "account"; tokenId: string; address: string | undefined }
  /** By an event that Stripe signed. */
  | { kind: "stripe"; eventId: string }
  /** By the service itself: the name of what it does in the background. */
  | { kind: "service"; name: string };

/** Who makes a change, of which organization, and in which request to the API, if any. */
export interface Changer {
  actor: Actor;
  organizationId: string;
  requestId?: string | undefined;
}

/** The same for a change that may name the organization elsewhere. */
export type Change = Omit<Changer, "organizationId"> & { organizationId?: string | undefined };

/** JSON. Dates become ISO 8601 texts in UTC, and what is undefined is left out. */
type Values = Readonly<Record<string, string | number | boolean | Date | readonly string[] | null | undefined>>;

interface AuditEntry extends Change {
  action: AuditAction;
  /** The object, if it is not the organization: the id of a token, grant, search, webhook or event, a plan's code, a provider. */
  subject?: string | undefined;
  /** What was changed, as it was before; null if it did not exist. */
  before?: Values | null | undefined;
  /** And as it is now. */
  after?: Values | null | undefined;
}

/**
 * Records one action, in the transaction of that action: if the process dies before the commit, there is neither, and after it
 * both. An action outside of Postgres is recorded first, so that at worst an entry stands for an attempt. An action that
 * left everything as it was, such as a repeat, is no entry.
 * @throws if Postgres refuses it. Then the action must not happen.
 */
export async function recordAudit(transaction: Querying, entry: AuditEntry): Promise<void> {
  const { actor, action, organizationId, subject, before, after, requestId } = entry;
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

const auditRow = rowOf({
  id: z.number(),
  at: z.date(),
  actorKind: z.string(),
  actor: z.string().nullable(),
  origin: z.string().nullable(),
  action: z.string(),
  orgId: z.string().nullable(),
  subject: z.string().nullable(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  requestId: z.string().nullable(),
});
/** An entry of the audit trail. What it does not have is null. */
export type StoredAuditEntry = z.infer<typeof auditRow>;

interface AuditFilter {
  organizationId?: string | undefined;
  since?: Date | undefined;
  action?: AuditAction | undefined;
  limit: number;
}

/** Reads the newest entries that a filter selects, at most `limit`, oldest first. */
export async function readAudit(database: Database, filter: AuditFilter): Promise<StoredAuditEntry[]> {
  const { organizationId, since, action, limit } = filter;
  const { rows } = await database.query(
    `select * from (
       select *, organization_id as org_id from audit_entries
       where ($1::text is null or organization_id = $1) and ($2::timestamptz is null or at >= $2)
         and ($3::text is null or action = $3)
       order by id desc limit $4
     ) newest order by id`,
    [organizationId, since, action, limit],
  );
  return rows.map((row) => auditRow.parse(row));
}

/** Counts the changes by an organization's accounts in the last 24 hours, without sign-ins and sign-outs. It has an index. */
export async function countChanges(database: Querying, organizationId: string): Promise<number> {
  const { rows } = await database.query(
    `select count(*) as changes from audit_entries
     where organization_id = $1 and actor_kind = 'account' and action not in ('session.opened', 'session.closed')
       and at > now() - interval '24 hours'`,
    [organizationId],
  );
  return valueOf(z.number(), rows[0]);
}
