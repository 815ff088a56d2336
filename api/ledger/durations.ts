import { z } from "zod";
import type { Database } from "../../shared/database/pool.ts";
import { rowOf } from "../../shared/database/row.ts";
import type { LedgerDay } from "../../shared/credits/ledger-days.ts";

/** One call reads at most so many rows, shared among its days or hours. */
const rowsMax = 30_000;
/** A day with more searches than its share is sampled at so many places, evenly spread over its searches. */
const placesPerDay = 20;

const figuresOfPeriod = z.object({
  /** Of how many searches the duration was read. */
  measured: z.number(),
  /** Half of them took at most this long; null if none was measured. */
  medianMs: z.number().nullable(),
  /** 95 of 100 took at most this long. */
  p95Ms: z.number().nullable(),
});
type Figures = z.infer<typeof figuresOfPeriod>;
const periodRow = rowOf({ place: z.number().nullable(), ...figuresOfPeriod.shape });

/** How long the searches of one UTC day or hour took, which is as in {@link LedgerDay}. */
export type DurationFigures = Figures & Pick<LedgerDay, "day">;

export interface Durations {
  periods: DurationFigures[];
  /** All of them together. A search of a sampled day or hour stands for those that were not read. */
  whole: Figures;
  /** Of a day or hour with more searches than this, about so many were read. */
  samplesMax: number;
  isSampled: boolean;
}

/**
 * Reads from the search log how long the searches of an organization took, or those with one token, on each of these days or
 * hours.
 *
 * It reads 30,000 rows at most. Of a day with more than its share it reads runs of rows that follow each other, which begin at
 * evenly spaced entries of the ledger. So an hour with many searches has as many runs as its share of the day. Where few of
 * the searches were charged, the runs begin at evenly spaced times. A token is looked for among the rows that were read.
 */
export async function readDurations(
  database: Database,
  organizationId: string,
  { days, tokenId }: { days: readonly LedgerDay[]; tokenId: string | undefined },
): Promise<Durations> {
  const samplesMax = Math.floor(rowsMax / Math.max(1, days.length));
  const { rows } = await database.query({
    name: "read_durations",
    text: `
      with periods as (
        select *, past - first + refunds as searches, past - first + refunds <= $6::bigint as is_whole
        from unnest($2::timestamptz[], $3::timestamptz[], $4::bigint[], $5::bigint[], $9::bigint[])
          with ordinality p (begins, ends, first, past, refunds, place)
      ), runs as (
        select p.place, p.ends, case when p.is_whole then $6 else $6 / $7::bigint end as length,
          case when n = 0 then p.begins when p.past - p.first <= $6 then p.begins + (p.ends - p.begins) * n / $7 else (
            select created_at from ledger_entries
            where organization_id = $1 and version = p.first + (p.past - p.first) * n / $7
          ) end as since
        from periods p cross join lateral generate_series(0, case when p.is_whole then 0 else $7 - 1 end) n
      ), sampled as (
        select r.place, l.duration_ms, l.token_id
        from runs r cross join lateral (
          select duration_ms, token_id from search_log
          where organization_id = $1 and at >= r.since and at < r.ends
          order by at, request_id limit r.length) l
      ), weighted as (
        select s.*, case when p.is_whole then 1 else p.searches::float8 / count(*) over (partition by s.place) end as weight
        from sampled s join periods p using (place)
      ), measured as (
        select place, duration_ms, sum(weight) over (order by duration_ms) as reached, sum(weight) over () as weights
        from weighted where $8::text is null or token_id = $8
      )
      select place, count(*) as measured, percentile_disc(0.5) within group (order by duration_ms) as median_ms,
        percentile_disc(0.95) within group (order by duration_ms) as p95_ms
      from measured group by place
      union all
      select null, count(*), min(duration_ms) filter (where reached >= 0.5 * weights),
        min(duration_ms) filter (where reached >= 0.95 * weights)
      from measured`,
    values: [
      organizationId,
      days.map(({ day }) => new Date(day)),
      days.map(({ ends }) => ends),
      days.map(({ first }) => first),
      days.map(({ past }) => past),
      samplesMax,
      placesPerDay,
      tokenId,
      days.map(({ refunds }) => refunds),
    ],
  });
  const read = new Map(rows.map((row) => periodRow.parse(row)).map(({ place, ...figures }) => [place, figures]));
  const unmeasured = { measured: 0, medianMs: null, p95Ms: null };
  const periods = days.map(({ day }, index) => ({ day, ...unmeasured, ...read.get(index + 1) }));
  return {
    periods,
    whole: { ...unmeasured, ...read.get(null) },
    samplesMax,
    isSampled: days.some(({ first, past, refunds }) => past - first + refunds > samplesMax),
  };
}
