import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { listOrganizationIds } from "../../shared/organizations/organizations.ts";

const organizationsPerPage = 500;
const hourMs = 3_600_000;

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
  outcome: z.enum(["not charged", "credited back"]),
  reason: z.string(),
  searches: z.number(),
  organizations: z.number(),
  last_request_id: z.string(),
});

/**
 * Counts the searches that were refunded or whose charge was reversed since a time, the most frequent reason first. It
 * reads no charges, and single refunds only of the first hour that is not whole; of that they are missing if it is 30 days ago.
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
    `with failed as (
       select o.id, 'credited back' as outcome, l.reason, 1 as searches, l.request_id
       from unnest($1::text[]) as o (id)
       cross join lateral (select first_version_since(o.id, $2) as version offset 0) first
       cross join lateral (
         select reason, request_id from ledger_entries
         where organization_id = o.id and kind = 'reversal' and kind <> 'charge' and version >= first.version) l
       union all
       select organization_id, 'not charged', reason, 1, request_id from refunds
       where organization_id = any ($1) and created_at >= $2 and created_at < $3
       union all
       select organization_id, 'not charged', reason, searches, last_request_id from refund_counts
       where organization_id = any ($1) and hour >= $3
     )
     select outcome, reason, sum(searches)::bigint as searches, count(distinct id) as organizations, max(request_id) as last_request_id
     from failed group by outcome, reason`,
    [ids, since, new Date(Math.ceil(since.getTime() / hourMs) * hourMs)],
  );
  for (const row of rows.map((read) => countRow.parse(read))) {
    const { outcome, reason, searches, organizations, last_request_id: lastRequestId } = row;
    const known = counts.get(`${outcome} ${reason}`);
    counts.set(`${outcome} ${reason}`, {
      reason,
      outcome,
      searches: searches + (known?.searches ?? 0),
      organizations: organizations + (known?.organizations ?? 0),
      lastRequestId: known && known.lastRequestId > lastRequestId ? known.lastRequestId : lastRequestId,
    });
  }
}
