import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { listOrganizationIds } from "../organizations/organizations.ts";

const organizationsPerPage = 500;

/** The searches of one kind and reason that cost nothing in the end. */
export interface FailureCount {
  reason: string;
  /** Whether the search was never charged, or its charge was given back. */
  outcome: "not charged" | "credited back";
  searches: number;
  organizations: number;
  lastRequestId: string;
}

const countRow = z.object({
  kind: z.enum(["refund", "reversal"]),
  reason: z.string(),
  searches: z.number(),
  organizations: z.number(),
  last_request_id: z.string(),
});

/**
 * Counts the searches that were refunded or whose charge was reversed since a time, the most frequent reason first. It reads
 * the ledger, by an index in which charges are not, so it is exact and its cost grows with the failures alone.
 * @param organizationId only of this organization; undefined for all, which are read page by page.
 */
export async function countFailures(
  database: Database,
  { organizationId, since }: { organizationId: string | undefined; since: Date },
): Promise<FailureCount[]> {
  const counts = new Map<string, FailureCount>();
  const pages = organizationId === undefined ? pagesOfAll(database) : [[organizationId]];
  for await (const ids of pages) await countPage(database, { ids, since }, counts);
  return [...counts.values()].toSorted((one, other) => other.searches - one.searches);
}

async function* pagesOfAll(database: Database): AsyncGenerator<string[]> {
  for (let after: string | undefined = ""; after !== undefined; ) {
    const ids = await listOrganizationIds(database, after, organizationsPerPage);
    yield ids;
    after = ids.length < organizationsPerPage ? undefined : ids.at(-1);
  }
}

async function countPage(
  database: Database,
  { ids, since }: { ids: string[]; since: Date },
  counts: Map<string, FailureCount>,
): Promise<void> {
  const { rows } = await database.query(
    `select l.kind, l.reason, count(*) as searches, count(distinct o.id) as organizations,
       max(l.request_id) as last_request_id
     from unnest($1::text[]) as o (id)
     cross join lateral (select first_version_since(o.id, $2) as version offset 0) first
     cross join lateral (
       select kind, reason, request_id from ledger_entries
       where organization_id = o.id and kind in ('refund', 'reversal') and version >= first.version) l
     group by l.kind, l.reason`,
    [ids, since],
  );
  for (const row of rows.map((read) => countRow.parse(read))) {
    const { kind, reason, searches, organizations, last_request_id: lastRequestId } = row;
    const outcome = kind === "refund" ? "not charged" : "credited back";
    const known = counts.get(`${kind} ${reason}`);
    counts.set(`${kind} ${reason}`, {
      reason,
      outcome,
      searches: searches + (known?.searches ?? 0),
      organizations: organizations + (known?.organizations ?? 0),
      lastRequestId: known && known.lastRequestId > lastRequestId ? known.lastRequestId : lastRequestId,
    });
  }
}
