import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { type RefundReason, type ReversalReason, refundReasons, reversalReasons } from "../../shared/outcomes.ts";

/**
 * The history that people read: one entry for each search, with its end and a later reversal, and one for each grant or
 * correction. It merges the ledger, ordered by version, with the refunds, ordered by number. A refund comes after the version of
 * the ledger at which it was decided.
 */

export const historyFilters = ["all", "charged", "refunded", "reversed", "grants"] as const;
export type HistoryFilter = (typeof historyFilters)[number];

export type HistoryEntry = { at: Date } & (
  | { outcome: "charged"; requestId: string; chargedMils: number }
  | { outcome: "refunded"; requestId: string; reason: RefundReason }
  | { outcome: "reversed"; requestId: string; chargedMils: number; reason: ReversalReason }
  | { outcome: "granted"; grantId: string; grantedMils: number; note: string }
  | { outcome: "corrected"; correctionId: string; correctedMils: number; note: string }
);

/** Where a page of the history begins: a version of the ledger and the number of a refund, as in `120.4711`. */
export const historyCursor = z
  .string()
  .regex(/^\d{1,16}\.\d{1,16}$/)
  .refine((cursor) => cursor.split(".").every((place) => Number.isSafeInteger(Number(place))));

const row = z.object({
  version: z.number(),
  /** Of a refund. */
  number: z.number().nullable(),
  created_at: z.date(),
  kind: z.enum(["charge", "refund", "grant", "correction"]),
  amount_mils: z.number(),
  request_id: z.string().nullable(),
  grant_id: z.string().nullable(),
  reason: z.string().nullable(),
  reversed_because: z.enum(reversalReasons).nullable(),
});
const refundReason = z.enum(refundReasons);

const entryColumns =
  "l.version, null::bigint as number, l.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id, l.reason";
const refundColumns =
  "f.version, f.number, f.created_at, 'refund' as kind, 0::bigint as amount_mils, f.request_id, null as grant_id, f.reason, null as reversed_because";

// An index allows one reversal at most; `limit` keeps the planner from reading all reversals.
const entriesWhere = (condition: string) =>
  `select ${entryColumns}, r.reason as reversed_because
   from ledger_entries l
   left join lateral (select reason from ledger_entries where request_id = l.request_id and kind = 'reversal' limit 1) r
     on l.kind = 'charge'
   where l.organization_id = $1 and l.version <= $2 and ${condition}
   order by l.version desc limit $3`;

const ledgerStatements: Record<Exclude<HistoryFilter, "refunded">, string> = {
  all: entriesWhere("l.kind <> 'reversal'"),
  charged: entriesWhere("l.kind = 'charge' and r.reason is null"),
  grants: entriesWhere("l.kind in ('grant', 'correction') and l.kind <> 'charge'"),
  // In the order of the reversals.
  reversed: `select r.version, null::bigint as number, r.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id, l.reason,
       r.reason as reversed_because
     from ledger_entries r
     join lateral (select * from ledger_entries where request_id = r.request_id and kind = 'charge' limit 1) l on true
     where r.organization_id = $1 and r.version <= $2 and r.kind = 'reversal'
     order by r.version desc limit $3`,
};
const refundStatement = `select ${refundColumns} from refunds f
   where f.organization_id = $1 and f.number <= $2 order by f.number desc limit $3`;

// Each filter of the history, for searches of which the ids are known.
const conditions: Record<HistoryFilter, string> = {
  all: "true",
  charged: "s.kind = 'charge' and s.reversed_because is null",
  refunded: "s.kind = 'refund'",
  reversed: "s.reversed_because is not null",
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
    text: `select s.*
      from unnest($2::text[]) with ordinality a (id, place)
      cross join lateral (
        (select ${entryColumns},
           (select reason from ledger_entries where request_id = a.id and kind = 'reversal' limit 1) as reversed_because
         from ledger_entries l where l.request_id = a.id and l.kind = 'charge' and l.organization_id = $1 limit 1)
        union all
        (select ${refundColumns} from refunds f where f.request_id = a.id and f.organization_id = $1 limit 1)
      ) s
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
    `select organization_id from ledger_entries where request_id = $1 and kind = 'charge'
     union all select organization_id from refunds where request_id = $1`,
    [requestId],
  );
  return rows[0] && ownerRow.parse(rows[0]).organization_id;
}

/** Entries of the history, newest first, with the cursor of the page behind them; undefined if there is none. */
export interface HistoryPage {
  entries: HistoryEntry[];
  older: string | undefined;
}

type Row = z.infer<typeof row>;

/**
 * Reads a page of what a filter selects, at most `limit` entries: the newest ones, or those from a cursor on. What is added
 * meanwhile moves no page.
 */
export async function readHistory(
  database: Database,
  organizationId: string,
  wanted: { filter: HistoryFilter; before?: string | undefined; limit: number },
): Promise<HistoryPage> {
  const { filter, limit } = wanted;
  const [version, number] = wanted.before?.split(".").map(Number) ?? [];
  const read = async (name: string, text: string, from = Number.MAX_SAFE_INTEGER): Promise<Row[]> => {
    // One more than is shown, where the next page begins.
    const { rows } = await database.query({ name, text, values: [organizationId, from, limit + 1] });
    return rows.map((one) => row.parse(one));
  };
  const [entries, refunds] = await Promise.all([
    filter === "refunded" ? [] : read(`history_${filter}`, ledgerStatements[filter], version),
    filter === "all" || filter === "refunded" ? read("history_refunds", refundStatement, number) : [],
  ]);
  const shown: Row[] = [];
  let [entry, refund] = [entries.shift(), refunds.shift()];
  while (shown.length < limit && (entry || refund)) {
    if (refund && !(entry && entry.version > refund.version)) {
      shown.push(refund);
      refund = refunds.shift();
    } else if (entry) {
      shown.push(entry);
      entry = entries.shift();
    }
  }
  const older = entry || refund ? `${entry?.version ?? 0}.${refund?.number ?? 0}` : undefined;
  return { entries: shown.map(readEntry), older };
}

function readEntry(entry: Row): HistoryEntry {
  const at = { at: entry.created_at };
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
