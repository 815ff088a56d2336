import { z } from "zod";
import type { Database } from "../database/pool.ts";
import type { Querying } from "../database/transaction.ts";
import type { AuditAction } from "./audit.ts";

const auditRow = z.object({
  id: z.number(),
  at: z.date(),
  actor_kind: z.string(),
  actor: z.string().nullable(),
  origin: z.string().nullable(),
  action: z.string(),
  organization_id: z.string().nullable(),
  subject: z.string().nullable(),
  before: z.record(z.string(), z.unknown()).nullable(),
  after: z.record(z.string(), z.unknown()).nullable(),
  request_id: z.string().nullable(),
});

/** An entry of the audit trail. What it does not have is null. */
export type StoredAuditEntry = ReturnType<typeof readEntry>;

function readEntry(row: unknown) {
  const { actor_kind: actorKind, organization_id: orgId, request_id: requestId, ...read } = auditRow.parse(row);
  const { id, at, actor, origin, action, subject, before, after } = read;
  return { id, at, actorKind, actor, origin, action, orgId, subject, before, after, requestId };
}

export interface AuditFilter {
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
       select * from audit_entries
       where ($1::text is null or organization_id = $1) and ($2::timestamptz is null or at >= $2)
         and ($3::text is null or action = $3)
       order by id desc limit $4
     ) newest order by id`,
    [organizationId, since, action, limit],
  );
  return rows.map(readEntry);
}

/** How many changes an organization's accounts made in the last 24 hours, by an index of its own; sign-ins and sign-outs are none. */
export async function countChanges(database: Querying, organizationId: string): Promise<number> {
  const { rows } = await database.query(
    `select count(*) as changes from audit_entries
     where organization_id = $1 and actor_kind = 'account' and action not in ('session.opened', 'session.closed')
       and at > now() - interval '24 hours'`,
    [organizationId],
  );
  return z.object({ changes: z.number() }).parse(rows[0]).changes;
}

/** Reads the entries of an organization in their order, from the first one after the id `after`. */
export async function readAuditPage(
  database: Database,
  organizationId: string,
  { after, limit }: { after: number; limit: number },
): Promise<StoredAuditEntry[]> {
  const { rows } = await database.query(
    "select * from audit_entries where organization_id = $1 and id > $2 order by id limit $3",
    [organizationId, after, limit],
  );
  return rows.map(readEntry);
}
