import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf, valueOf } from "../../shared/database/row.ts";
import { type DayFigures, type LedgerDay, withoutPlace } from "../../shared/credits/ledger-days.ts";

/** One call reads at most so many ledger entries, the newest ones. */
export const entriesMax = 100_000;

/** What the searches with one token were charged on each of some days or hours. */
export interface TokenDays {
  /** From the first day that was counted. Nothing is granted to a token, nor corrected. */
  figures: DayFigures[];
  /** When the first counted entry was written; undefined if all entries of these days were counted. */
  countedSince: Date | undefined;
  /** Whether there are searches without a token that were not charged: the sweeper, which ended them, does not know it. */
  hasTokenless: boolean;
}

const periodRow = rowOf({
  place: z.number(),
  charges: z.number(),
  reversals: z.number(),
  chargedMils: z.number(),
  reversedMils: z.number(),
});
const nothing = { charges: 0, reversals: 0, chargedMils: 0, reversedMils: 0, grantedMils: 0, correctedMils: 0 };

/**
 * Reads what the searches with a token were charged on these days or hours, oldest first, from at most 100,000 ledger entries.
 * Unlike `readLedgerDays` it has to read the charges: versions and balances say nothing about tokens.
 */
export async function readTokenDays(
  database: Database,
  organizationId: string,
  tokenId: string,
  days: readonly LedgerDay[],
): Promise<TokenDays> {
  const past = days.at(-1)?.past ?? 1;
  const first = Math.max(days[0]?.first ?? 1, past - entriesMax);
  const isWhole = first === (days[0]?.first ?? 1);
  const counted = isWhole ? days : days.filter((day, place) => day.past > first || place === days.length - 1);
  const countedSince = isWhole ? undefined : await readTime(database, organizationId, first);
  const refunds = await readTokenRefunds(database, organizationId, { tokenId, days: counted, since: countedSince });
  const { rows } = await database.query({
    name: "read_token_days",
    // An empty day begins with the version of the next day. Of equal beginnings width_bucket() finds the last, which has the entries.
    text: `select width_bucket(version, $4::bigint[]) as place,
        count(*) filter (where kind = 'charge') as charges,
        count(*) filter (where kind = 'reversal') as reversals,
        coalesce(-sum(amount_mils) filter (where kind = 'charge'), 0)::bigint as charged_mils,
        coalesce(sum(amount_mils) filter (where kind = 'reversal'), 0)::bigint as reversed_mils
      from ledger_entries
      where organization_id = $1 and version >= $2 and version < $3 and kind in ('charge', 'reversal') and token_id = $5
      group by 1`,
    values: [organizationId, first, past, counted.map((day) => Math.max(day.first, first)), tokenId],
  });
  const read = new Map(rows.map((row) => periodRow.parse(row)).map(({ place, ...figures }) => [place, figures]));
  const figures = counted.map((day, index) => {
    const { searches = 0 } = refunds.get(index + 1) ?? {};
    return { ...withoutPlace(day), ...nothing, refunds: searches, ...read.get(index + 1) };
  });
  const hasTokenless = [...refunds.values()].some((row) => row.hasTokenless);
  return { figures, countedSince, hasTokenless };
}

const refundsRow = rowOf({ place: z.number(), searches: z.number(), hasTokenless: z.boolean() });

/** By the place of the day, from 1: uncharged searches with the token, and whether there are any without a token. */
async function readTokenRefunds(
  database: Database,
  organizationId: string,
  { tokenId, days, since }: { tokenId: string; days: readonly LedgerDay[]; since: Date | undefined },
) {
  const begins = days.map(({ day }) => new Date(day));
  const { rows } = await database.query({
    name: "read_token_refunds",
    text: `select width_bucket(hour, $2::timestamptz[]) as place,
        coalesce(sum(searches) filter (where token_id = $5), 0)::bigint as searches, bool_or(token_id = '') as has_tokenless
      from refund_counts
      where organization_id = $1 and hour >= $3 and hour < $4 and token_id in ($5, '')
      group by 1`,
    values: [organizationId, begins, since ?? begins[0], days.at(-1)?.ends, tokenId],
  });
  return new Map(rows.map((row) => refundsRow.parse(row)).map((row) => [row.place, row]));
}

async function readTime(database: Database, organizationId: string, version: number): Promise<Date | undefined> {
  const { rows } = await database.query(
    "select created_at from ledger_entries where organization_id = $1 and version = $2",
    [organizationId, version],
  );
  return rows[0] && valueOf(z.date(), rows[0]);
}
