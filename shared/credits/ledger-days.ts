import { z } from "zod";
import { rowOf } from "../database/row.ts";
import type { Querying } from "../database/transaction.ts";

const dayFigures = z.object({
  /** As in `2026-03-01`, or `2026-03-01T14:00Z` for an hour. */
  day: z.string(),
  charges: z.number(),
  /** Searches that were not charged. */
  refunds: z.number(),
  reversals: z.number(),
  chargedMils: z.number(),
  reversedMils: z.number(),
  grantedMils: z.number(),
  /** What corrections added; below 0 if they took more away. */
  correctedMils: z.number(),
});
/** One UTC day or hour of an organization. Mils are positive. */
export type DayFigures = z.infer<typeof dayFigures>;

const dayRow = rowOf({
  ...dayFigures.shape,
  /** The balance before the day. */
  openingMils: z.number(),
  ends: z.date(),
  /** The versions of the day's entries: from `first` to the one before `past`. */
  first: z.number(),
  past: z.number(),
});
/** A UTC day or hour with its place in the ledger. */
export type LedgerDay = z.infer<typeof dayRow>;

/** The figures of a day alone. */
export const withoutPlace = (day: LedgerDay): DayFigures => dayFigures.parse(day);

/**
 * Reads days of an organization's ledger, oldest first: from the day `from`, such as `2026-03-01`, or without it the last
 * ones up to today. If `from` is a time, each day begins at that time. With the unit `hour` they are hours.
 *
 * The cost does not grow with the number of charges, because charges are not read. Versions have no gaps and each entry
 * has the balance after it. So `first_version_since()` finds the first entry of a day; the number of charges is the
 * number of entries minus the other kinds; and the charged mils are the fall of the balance plus what the other kinds
 * added. Searches that were not charged have no entry; they are counted by hour.
 */
export async function readLedgerDays(
  database: Querying,
  organizationId: string,
  { from, days, unit = "day" }: { from?: string; days: number; unit?: "day" | "hour" },
): Promise<LedgerDay[]> {
  const { rows } = await database.query({
    name: "read_days",
    text: `
      with starts as materialized (
        select d.day, first.version, coalesce((select l.balance_after_mils from ledger_entries l
          where l.organization_id = $1 and l.version = first.version - 1), 0) as balance_mils
        from (
          -- Days are added to a time without a zone: with one, days of the session's zone may have 23 or 25 hours.
          select (coalesce($3::timestamp, date_trunc($4::text, now() at time zone 'UTC') + (1 - $2::int) * ('1 ' || $4)::interval)
                  + n * ('1 ' || $4)::interval) at time zone 'UTC' as day
          from generate_series(0, $2::int) n
        ) d
        cross join lateral (select first_version_since($1, d.day) as version offset 0) first
      ), spans as (
        select day, lead(day) over in_order as ends, version as first, lead(version) over in_order as past, balance_mils as opening_mils,
               balance_mils - lead(balance_mils) over in_order as fallen_mils
        from starts window in_order as (order by day)
      )
      select to_char(s.day at time zone 'UTC', case $4 when 'hour' then 'YYYY-MM-DD"T"HH24:MI"Z"' else 'YYYY-MM-DD' end) as day,
        s.past - s.first - o.reversals - o.credits as charges, f.refunds, o.reversals,
        s.fallen_mils + o.reversed_mils + o.granted_mils + o.corrected_mils as charged_mils, o.reversed_mils, o.granted_mils,
        o.corrected_mils, s.opening_mils, s.ends, s.first, s.past
      from spans s
      cross join lateral (
        select count(*) filter (where kind = 'reversal') as reversals,
          count(*) filter (where kind in ('grant', 'correction')) as credits,
          coalesce(sum(amount_mils) filter (where kind = 'reversal'), 0)::bigint as reversed_mils,
          coalesce(sum(amount_mils) filter (where kind = 'grant'), 0)::bigint as granted_mils,
          coalesce(sum(amount_mils) filter (where kind = 'correction'), 0)::bigint as corrected_mils
        from ledger_entries
        where organization_id = $1 and kind in ('reversal', 'grant', 'correction') and kind <> 'charge'
          and version >= s.first and version < s.past
      ) o
      cross join lateral (
        select coalesce(sum(searches), 0)::bigint as refunds from refund_counts
        where organization_id = $1 and hour >= s.day and hour < s.ends
      ) f
      where s.past is not null
      order by s.day`,
    values: [organizationId, days, from, unit],
  });
  return rows.map((row) => dayRow.parse(row));
}
