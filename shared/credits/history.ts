import { z } from "zod";
import type { Database } from "../database/pool.ts";
import { type RefundReason, type ReversalReason, refundReasons, reversalReasons } from "../outcomes.ts";

/**
 * The ledger as people read it: one row for each search, with its end and a later reversal, and one for each grant or
 * correction. Pages
 * follow each other by version, so new entries do not shift them.
 */

export const historyFilters = ["all", "charged", "refunded", "reversed", "grants"] as const;
export type HistoryFilter = (typeof historyFilters)[number];

export type HistoryEntry = { version: number; at: Date } & (
  | { outcome: "charged"; requestId: string; chargedMils: number }
  | { outcome: "refunded"; requestId: string; reason: RefundReason }
  | { outcome: "reversed"; requestId: string; chargedMils: number; reason: ReversalReason }
  | { outcome: "granted"; grantId: string; grantedMils: number; note: string }
  | { outcome: "corrected"; correctionId: string; correctedMils: number; note: string }
);

const row = z.object({
  version: z.number(),
  created_at: z.date(),
  kind: z.enum(["charge", "refund", "grant", "correction"]),
  amount_mils: z.number(),
  request_id: z.string().nullable(),
  grant_id: z.string().nullable(),
  reason: z.string().nullable(),
  reversed_because: z.enum(reversalReasons).nullable(),
});
const refundReason = z.enum(refundReasons);

// An index allows one reversal at most; `limit` keeps the planner from reading all reversals.
const entriesWhere = (condition: string) =>
  `select l.version, l.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id, l.reason, r.reason as reversed_because
   from ledger_entries l
   left join lateral (select reason from ledger_entries where request_id = l.request_id and kind = 'reversal' limit 1) r
     on l.kind = 'charge'
   where l.organization_id = $1 and l.version < $2 and ${condition}
   order by l.version desc limit $3`;

const statements: Record<HistoryFilter, string> = {
  all: entriesWhere("l.kind <> 'reversal'"),
  charged: entriesWhere("l.kind = 'charge' and r.reason is null"),
  refunded: entriesWhere("l.kind = 'refund'"),
  grants: entriesWhere("l.kind in ('grant', 'correction') and l.kind <> 'charge'"),
  // In the order of the reversals.
  reversed: `select r.version, r.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id, l.reason,
       r.reason as reversed_because
     from ledger_entries r
     join lateral (select * from ledger_entries where request_id = r.request_id and kind = 'charge' limit 1) l on true
     where r.organization_id = $1 and r.version < $2 and r.kind = 'reversal'
     order by r.version desc limit $3`,
};

// Each filter of the history, for searches of which the ids are known.
const conditions: Record<HistoryFilter, string> = {
  all: "true",
  charged: "l.kind = 'charge' and r.reason is null",
  refunded: "l.kind = 'refund'",
  reversed: "r.reason is not null",
  grants: "false",
};

/** Reads the entries of these searches of an organization, in the order of the ids. What a filter leaves out is missing. */
export async function readSearchEntries(
  database: Database,
  organizationId: string,
  requestIds: readonly string[],
  filter: HistoryFilter = "all",
): Promise<HistoryEntry[]> {
  const { rows } = await database.query({
    name: `search_entries_${filter}`,
    // Lateral with a limit: each search is looked up by the indexes.
    text: `select l.*, r.reason as reversed_because
      from unnest($2::text[]) with ordinality a (id, place)
      cross join lateral (
        select version, created_at, kind, amount_mils, request_id, grant_id, reason from ledger_entries
        where request_id = a.id and kind in ('charge', 'refund') and organization_id = $1 limit 1) l
      left join lateral (select reason from ledger_entries where request_id = a.id and kind = 'reversal' limit 1) r
        on l.kind = 'charge'
      where ${conditions[filter]}
      order by a.place`,
    values: [organizationId, requestIds],
  });
  return rows.map((read) => readEntry(row.parse(read)));
}

const ownerRow = z.object({ organization_id: z.string() });

/** The organization of a search that was charged or refunded; undefined if the search is not decided, or unknown. */
export async function readSearchOwner(database: Database, requestId: string): Promise<string | undefined> {
  const { rows } = await database.query(
    "select organization_id from ledger_entries where request_id = $1 and kind in ('charge', 'refund')",
    [requestId],
  );
  return rows[0] && ownerRow.parse(rows[0]).organization_id;
}

/** Reads at most `limit` entries that a filter selects and that are older than the version `before`, newest first. */
export async function readHistory(
  database: Database,
  organizationId: string,
  wanted: { filter: HistoryFilter; before?: number | undefined; limit: number },
): Promise<HistoryEntry[]> {
  const { rows } = await database.query({
    name: `history_${wanted.filter}`,
    text: statements[wanted.filter],
    values: [organizationId, wanted.before ?? Number.MAX_SAFE_INTEGER, wanted.limit],
  });
  return rows.map((read) => readEntry(row.parse(read)));
}

function readEntry(entry: z.infer<typeof row>): HistoryEntry {
  const at = { version: entry.version, at: entry.created_at };
  const requestId = entry.request_id ?? "";
  const mils = Math.abs(entry.amount_mils);
  switch (entry.kind) {
    case "grant":
      return { ...at, outcome: "granted", grantId: entry.grant_id ?? "", grantedMils: mils, note: entry.reason ?? "" };
    case "correction": {
      const { grant_id: id, amount_mils: correctedMils, reason: note } = entry;
      return { ...at, outcome: "corrected", correctionId: id ?? "", correctedMils, note: note ?? "" };
    }
    case "refund":
      return { ...at, outcome: "refunded", requestId, reason: refundReason.parse(entry.reason) };
    default:
      return entry.reversed_because
        ? { ...at, outcome: "reversed", requestId, chargedMils: mils, reason: entry.reversed_because }
        : { ...at, outcome: "charged", requestId, chargedMils: mils };
  }
}
