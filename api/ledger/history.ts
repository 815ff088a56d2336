import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import { type RefundReason, type ReversalReason, refundReasons, reversalReasons } from "../../shared/outcomes.ts";

/**
 * The history that people read: one entry for each search, with its end and a later reversal, and one for each grant or
 * correction. It merges the ledger, ordered by version, with the refunds, ordered by number. A refund comes after the version of
 * the ledger at which it was decided.
 */

/**
 * One call that looks for rows among many looks at no more of them. Among a million rows of the search log in 30 days that takes
 * some 70 ms on two busy cores.
 */
export const scannedMax = 10_000;

export const historyFilters = ["all", "charged", "refunded", "reversed", "grants"] as const;
export type HistoryFilter = (typeof historyFilters)[number];

/** The name of a search's token, or its id without one; null where the sweeper decided, which does not know the token. */
type TokenName = string | null;

export type HistoryEntry = { at: Date } & (
  | { outcome: "charged"; requestId: string; token: TokenName; chargedMils: number }
  | { outcome: "refunded"; requestId: string; token: TokenName; reason: RefundReason }
  | { outcome: "reversed"; requestId: string; token: TokenName; chargedMils: number; reason: ReversalReason }
  | { outcome: "granted"; grantId: string; grantedMils: number; note: string }
  | { outcome: "corrected"; correctionId: string; correctedMils: number; note: string }
);

/** Where a page of the history begins: a version of the ledger and the number of a refund, as in `120.4711`. */
export const historyCursor = z
  .string()
  .regex(/^\d{1,16}\.\d{1,16}$/)
  .refine((cursor) => cursor.split(".").every((place) => Number.isSafeInteger(Number(place))));

const row = rowOf({
  version: z.number(),
  /** Of a refund. */
  number: z.number().nullable(),
  createdAt: z.date(),
  kind: z.enum(["charge", "refund", "grant", "correction"]),
  amountMils: z.number(),
  requestId: z.string().nullable(),
  grantId: z.string().nullable(),
  token: z.string().nullable(),
  reason: z.string().nullable(),
  reversedBecause: z.enum(reversalReasons).nullable(),
});
const refundReason = z.enum(refundReasons);

const entryColumns = `l.version, null::bigint as number, l.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id,
  coalesce((select name from tokens where id = l.token_id), l.token_id) as token, l.reason`;
const refundColumns = `f.version, f.number, f.created_at, 'refund' as kind, 0::bigint as amount_mils, f.request_id, null as grant_id,
  coalesce((select name from tokens where id = f.token_id), f.token_id) as token, f.reason, null as reversed_because`;

/** A time span: from `since` up to before `until`. Undefined is unbounded. */
export interface TimeSpan {
  since?: Date | undefined;
  until?: Date | undefined;
}

// An index allows one reversal at most; `limit` keeps the planner from reading all reversals.
const entriesWhere = (condition: string) =>
  `select ${entryColumns}, r.reason as reversed_because
   from ledger_entries l
   left join lateral (select reason from ledger_entries where request_id = l.request_id and kind = 'reversal' limit 1) r
     on l.kind = 'charge'
   where l.organization_id = $1 and l.version <= $2 and l.version >= $4 and ${condition}
   order by l.version desc limit $3`;

const ledgerStatements: Record<Exclude<HistoryFilter, "refunded">, string> = {
  all: entriesWhere("l.kind <> 'reversal'"),
  charged: entriesWhere("l.kind = 'charge' and r.reason is null"),
  // A query for each kind finds them by the index of what is no charge. For both at once Postgres may read all charges.
  grants: `select ${entryColumns}, null as reversed_because
     from unnest(array['grant', 'correction']) k (kind)
     cross join lateral (
       select * from ledger_entries
       where organization_id = $1 and version <= $2 and version >= $4 and kind = k.kind and kind <> 'charge'
       order by version desc limit $3) l
     order by l.version desc limit $3`,
  // In the order of the reversals.
  reversed: `select r.version, null::bigint as number, r.created_at, l.kind, l.amount_mils, l.request_id, l.grant_id,
       coalesce((select name from tokens where id = l.token_id), l.token_id) as token, l.reason, r.reason as reversed_because
     from ledger_entries r
     join lateral (select * from ledger_entries where request_id = r.request_id and kind = 'charge' limit 1) l on true
     where r.organization_id = $1 and r.version <= $2 and r.version >= $4 and r.kind = 'reversal'
     order by r.version desc limit $3`,
};
const refundStatement = `select ${refundColumns} from refunds f
   where f.organization_id = $1 and f.number <= $2 and f.number >= $4
   order by f.number desc limit $3`;

// Each filter of the history, for searches with known ids.
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

/** The organization of a search that was charged or refunded; undefined if the search is not decided, or unknown. */
export async function readSearchOwner(database: Database, requestId: string): Promise<string | undefined> {
  const { rows } = await database.query(
    `select organization_id from ledger_entries where request_id = $1 and kind = 'charge'
     union all select organization_id from refunds where request_id = $1`,
    [requestId],
  );
  return rows[0] && valueOf(z.string(), rows[0]);
}

/** Entries of the history, newest first, with the cursor of the page behind them; undefined if there is none. */
interface HistoryPage {
  entries: HistoryEntry[];
  older: string | undefined;
  /** Whether the page ended because it had looked at enough entries of the ledger, and not because it was full. */
  isCutShort: boolean;
}

type Row = z.infer<typeof row>;

const placesRow = rowOf({ first: z.number(), last: z.number(), firstRefund: z.number(), lastRefund: z.number() });
type Places = z.infer<typeof placesRow>;

const wholeHistory: Places = {
  first: 0,
  last: Number.MAX_SAFE_INTEGER,
  firstRefund: 0,
  lastRefund: Number.MAX_SAFE_INTEGER,
};

// The number of the first refund since the time in this parameter, or the one behind the last: a binary search by number,
// although numbers have gaps. No statement filters by the time itself: its index, of all organizations, would be chosen.
const firstRefundSince = (parameter: string) => `(
  with recursive halves (low, high) as (
    select coalesce(min(number), 0), coalesce(max(number) + 1, 0) from refunds where organization_id = $1
    union all
    select case when m.created_at < ${parameter} then m.number + 1 else h.low end,
           case when m.created_at < ${parameter} then h.high else (h.low + h.high) / 2 end
    from halves h
    cross join lateral (select f.number, f.created_at from refunds f
                        where f.organization_id = $1 and f.number >= (h.low + h.high) / 2 order by f.number limit 1) m
    where h.low < h.high
  )
  select low from halves where low >= high)`;

/**
 * The places of a time span in the ledger and among the refunds, so that no entry outside is read. Their order decides, as
 * in the figures of a day: what waited for a lock at midnight counts with its neighbours.
 */
async function readPlaces(
  database: Database,
  organizationId: string,
  { since, until, filter }: TimeSpan & { filter: HistoryFilter },
): Promise<Places> {
  // The bound of a page of charges needs the newest version.
  if (!since && !until && filter !== "charged") return wholeHistory;
  const { rows } = await database.query({
    name: "history_places",
    text: `select first_version_since($1, $2) as first, first_version_since($1, $3) - 1 as last,
        ${firstRefundSince("$2")} as first_refund,
        ${firstRefundSince("$3")} - 1 as last_refund`,
    values: [organizationId, since ?? "-infinity", until ?? "infinity"],
  });
  return placesRow.parse(rows[0]);
}

/**
 * Reads a page of what a filter selects in a time span, at most `limit` entries: the newest ones, or those from a cursor on. What is
 * added meanwhile moves no page. Between two charges that stand any number may have been reversed, so a page of them looks at
 * 10,000 versions at most.
 */
export async function readHistory(
  database: Database,
  organizationId: string,
  wanted: { filter: HistoryFilter; before?: string | undefined; limit: number } & TimeSpan,
): Promise<HistoryPage> {
  const { filter, limit } = wanted;
  const { first, last, firstRefund, lastRefund } = await readPlaces(database, organizationId, wanted);
  const [version = last, number = lastRefund] = wanted.before?.split(".").map(Number) ?? [];
  const read = async (name: string, text: string, values: unknown[]): Promise<Row[]> => {
    const { rows } = await database.query({ name, text, values });
    return rows.map((one) => row.parse(one));
  };
  const rowsMax = limit + 1; // One more than is shown, where the next page begins.
  const newest = Math.min(version, last);
  const oldest = filter === "charged" ? Math.max(first, newest - scannedMax + 1) : first;
  const ofLedger = [organizationId, newest, rowsMax, oldest];
  const ofRefunds = [organizationId, Math.min(number, lastRefund), rowsMax, firstRefund];
  const [entries, refunds] = await Promise.all([
    filter === "refunded" ? [] : read(`history_${filter}`, ledgerStatements[filter], ofLedger),
    filter === "all" || filter === "refunded" ? read("history_refunds", refundStatement, ofRefunds) : [],
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
  const isCutShort = !entry && !refund && oldest > first;
  const next = isCutShort ? oldest - 1 : (entry?.version ?? 0);
  const older = entry || refund || isCutShort ? `${next}.${refund?.number ?? 0}` : undefined;
  return { entries: shown.map(readEntry), older, isCutShort };
}

function readEntry(entry: Row): HistoryEntry {
  const at = { at: entry.createdAt };
  const search = { requestId: entry.requestId ?? "", token: entry.token };
  const mils = Math.abs(entry.amountMils);
  switch (entry.kind) {
    case "grant":
      return { ...at, outcome: "granted", grantId: entry.grantId ?? "", grantedMils: mils, note: entry.reason ?? "" };
    case "correction": {
      const { grantId: id, amountMils: correctedMils, reason: note } = entry;
      return { ...at, outcome: "corrected", correctionId: id ?? "", correctedMils, note: note ?? "" };
    }
    case "refund":
      return { ...at, outcome: "refunded", ...search, reason: refundReason.parse(entry.reason) };
    default:
      return entry.reversedBecause
        ? { ...at, outcome: "reversed", ...search, chargedMils: mils, reason: entry.reversedBecause }
        : { ...at, outcome: "charged", ...search, chargedMils: mils };
  }
}
