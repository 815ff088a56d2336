import { afterAll, expect, test } from "vitest";
import { readDurations } from "../../../api/ledger/durations.ts";
import { entriesMax, readTokenDays } from "../../../api/ledger/token-days.ts";
import { readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { newId } from "../../../shared/ids.ts";
import { insertSearches } from "../../../shared/search-log/search-log.ts";
import { type BackdatedEntry, backdateLedger, countRefunds } from "../../harness/fixtures/backdate-ledger.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** The days of a ledger, of a token, and how long searches took on each. */

// In another time zone than the one that the days are cut in.
const { database, url } = await openFreshDatabase(afterAll, { timeZone: "Pacific/Auckland" });

test("90 days are read within the time limit of a query, also where Postgres' statistics are older than the ledger's entries", async () => {
  const [entries, days] = [10_000, 90];
  const [busy, earlier] = [await createPayer(database), await createPayer(database)];
  const insertDecided = async (organizationId: string, count: number) =>
    asOwner(url, async (client) => {
      await client.query(
        `with charges as (
           insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id, created_at)
           select $1, n, 'charge', 0, 0, $1 || n, 't', '2026-03-01T00:00Z'::timestamptz + (n - 1) * interval '90 days' / $2::int
           from generate_series(1, $2::int) n
           returning *)
         insert into refunds (organization_id, version, request_id, reason, created_at)
         select organization_id, version, request_id || 'r', 'provider_unavailable', created_at from charges order by version`,
        [organizationId, count],
      );
      await client.query("update organizations set version = $2 where id = $1", [organizationId, count]);
      await countRefunds(client, organizationId);
    });
  await insertDecided(earlier, 100);
  await asOwner(url, (client) => client.query("analyze"));
  await insertDecided(busy, entries);

  const read = await readLedgerDays(database, busy, { from: "2026-03-01", days });
  expect(read).toHaveLength(days);
  expect(read.reduce((total, { charges }) => total + charges, 0)).toBe(entries);
  expect(read.reduce((total, { refunds }) => total + refunds, 0)).toBe(entries);
});

const [shop, blog] = [newId("tok"), newId("tok")];
const march = (time: string) => new Date(`2026-03-${time}Z`);
const none = {
  charges: 0,
  refunds: 0,
  reversals: 0,
  chargedMils: 0,
  reversedMils: 0,
  grantedMils: 0,
  correctedMils: 0,
};

test("the days of a token have its charges, what was not charged and what was credited back, and of no other token", async () => {
  const organizationId = await createPayer(database);
  const credited = newId("req");
  const past: BackdatedEntry[] = [
    { at: march("01T00:00"), kind: "grant", mils: 1_000 },
    { at: march("01T12:00"), kind: "charge", mils: 5, tokenId: shop },
    { at: march("01T12:01"), kind: "charge", mils: 7, tokenId: blog },
    { at: march("01T23:59"), kind: "charge", mils: 9, tokenId: shop, requestId: credited },
    {
      at: march("03T00:00"),
      kind: "reversal",
      mils: 9,
      tokenId: shop,
      requestId: credited,
      reason: "caller_disconnected",
    },
    { at: march("03T00:01"), kind: "refund", reason: "provider_unavailable", tokenId: shop },
    { at: march("03T00:02"), kind: "charge", mils: 11, tokenId: blog },
  ];
  await backdateLedger(url, organizationId, past);
  const days = await readLedgerDays(database, organizationId, { from: "2026-03-01", days: 4 });
  expect(await readTokenDays(database, organizationId, shop, days)).toEqual({
    figures: [
      { ...none, day: "2026-03-01", charges: 2, chargedMils: 14 },
      { ...none, day: "2026-03-02" },
      { ...none, day: "2026-03-03", refunds: 1, reversals: 1, reversedMils: 9 },
      { ...none, day: "2026-03-04" },
    ],
    countedSince: undefined,
    hasTokenless: false,
  });
  await backdateLedger(url, organizationId, [{ at: march("04T00:00"), kind: "refund", reason: "swept" }]);
  const after = await readLedgerDays(database, organizationId, { from: "2026-03-03", days: 2 });
  expect(await readTokenDays(database, organizationId, blog, after)).toMatchObject({
    figures: [
      { charges: 1, chargedMils: 11 },
      { charges: 0, refunds: 0 },
    ],
    hasTokenless: true,
  });
});

test("of a longer ledger the newest 100,000 entries are counted, from the first day that has one of them", async () => {
  const organizationId = await createPayer(database);
  // Two entries a second up to the end of March 5.
  const entries = entriesMax + 10;
  await asOwner(url, (client) =>
    client.query(
      `with added as (
         insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, grant_id, created_at, token_id)
         select $1, n, case n when 1 then 'grant' else 'charge' end, case n when 1 then $2 else -1 end, $2::bigint - n + 1,
           case when n > 1 then $1 || n end, case n when 1 then $1 end,
           '2026-03-06T00:00Z'::timestamptz - ($2::bigint - n + 1) * interval '0.5 seconds', case when n > 1 then $3 end
         from generate_series(1, $2::bigint) n)
       update organizations set version = $2, balance_mils = 1 where id = $1`,
      [organizationId, entries, shop],
    ),
  );
  const days = await readLedgerDays(database, organizationId, { from: "2026-03-02", days: 4 });
  const { figures, countedSince } = await readTokenDays(database, organizationId, shop, days);
  expect(figures.map(({ day }) => day)).toEqual(["2026-03-05"]);
  expect(figures[0]).toMatchObject({ charges: entriesMax, chargedMils: entriesMax });
  expect(countedSince).toEqual(new Date(Date.parse("2026-03-06T00:00Z") - entriesMax * 500));
});

/** Searches that were not charged, as ledger and log have them. */
async function search(organizationId: string, searches: { at: string; durationMs: number; tokenId: string }[]) {
  const made = searches.map(({ at, ...fields }) => ({ ...fields, requestId: requestIdAt(Date.parse(at)), at }));
  await backdateLedger(
    url,
    organizationId,
    made.map(({ at }) => ({ at: new Date(at), kind: "refund", reason: "provider_unavailable" })),
  );
  const asked = { organizationId, keyHash: undefined, query: query(), trace: undefined };
  await insertSearches(
    database,
    made.map(({ requestId, durationMs, tokenId }) => ({ ...asked, requestId, durationMs, tokenId })),
  );
}

test("each day or hour has the median and the 95th percentile of its searches, of all tokens or of one", async () => {
  const organizationId = await createPayer(database);
  const tokenId = newId("tok");
  await search(organizationId, [
    ...Array.from({ length: 100 }, (_, nth) => ({ at: "2026-03-01T23:59:59.999Z", durationMs: nth + 1, tokenId })),
    { at: "2026-03-03T00:00:00.000Z", durationMs: 7, tokenId: newId("tok") },
    { at: "2026-03-03T01:00:00.000Z", durationMs: 9, tokenId },
  ]);
  const days = await readLedgerDays(database, organizationId, { from: "2026-03-01", days: 3 });
  const read = (wanted: string | undefined) => readDurations(database, organizationId, { days, tokenId: wanted });
  const [first, second] = [
    { day: "2026-03-01", measured: 100, medianMs: 50, p95Ms: 95 },
    { day: "2026-03-02", measured: 0, medianMs: null, p95Ms: null },
  ];
  expect(await read(undefined)).toEqual({
    periods: [first, second, { day: "2026-03-03", measured: 2, medianMs: 7, p95Ms: 9 }],
    whole: { measured: 102, medianMs: 49, p95Ms: 95 },
    samplesMax: 10_000,
    isSampled: false,
  });
  expect(await read(tokenId)).toMatchObject({
    periods: [first, second, { day: "2026-03-03", measured: 1, medianMs: 9, p95Ms: 9 }],
  });
  expect(await read(newId("tok"))).toMatchObject({
    periods: [{ measured: 0 }, second, { measured: 0 }],
    whole: { measured: 0, medianMs: null, p95Ms: null },
  });
  const hours = await readLedgerDays(database, organizationId, { from: "2026-03-03", days: 2, unit: "hour" });
  expect(await readDurations(database, organizationId, { days: hours, tokenId: undefined })).toMatchObject({
    periods: [
      { day: "2026-03-03T00:00Z", measured: 1, medianMs: 7 },
      { day: "2026-03-03T01:00Z", measured: 1, medianMs: 9 },
    ],
  });
});

const charged = `insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id, created_at)
  select $1, version, 'charge', 0, 0, $1 || n, 't', at from searches`;
const refunded = `insert into refunds (organization_id, version, request_id, reason, created_at)
  select $1, 0, $1 || n, 'provider_unavailable', at from searches`;

test.each([
  { sample: "a burst has its share of the searches and not of the time", decided: charged, medianMs: 1_000 },
  { sample: "searches that were not charged have their share of the time", decided: refunded, medianMs: 10 },
])(
  "a day with too many searches is measured by a sample, in which $sample, and counts whole in the range",
  async ({ decided, medianMs }) => {
    const organizationId = await createPayer(database);
    // Of 10,000 searches on March 2, 6,000 took 1,000 ms, within ten minutes; the others, all day long, took 10 ms. The 300
    // of March 3, all of which are read, took 500 ms: unweighted, they would be the median of the range.
    await asOwner(url, async (client) => {
      await client.query(
        `with searches as (
         select row_number() over (order by at) as version, at, took, n
         from (select n, case when n <= 6000 then 1000 when n <= 10000 then 10 else 500 end as took,
                 '2026-03-02T00:00Z'::timestamptz + case when n <= 6000 then interval '12 hours' + n * interval '0.1 seconds'
                   when n <= 10000 then (n - 6000) * interval '21 seconds' else interval '30 hours' + n * interval '1 second' end as at
               from generate_series(1, 10300) n) made
       ), logged as (
         insert into search_log (at, request_id, organization_id, token_id, keyword, location, language, device, depth, duration_ms)
         select at, $1 || n, $1, 't', 'k', 'l', 'l', 'desktop', 10, took from searches
       )
       ${decided}`,
        [organizationId],
      );
      await countRefunds(client, organizationId);
      if (decided === charged)
        await client.query("update organizations set version = 10300 where id = $1", [organizationId]);
    });
    const days = await readLedgerDays(database, organizationId, { from: "2026-03-01", days: 90 });
    const read = await readDurations(database, organizationId, { days, tokenId: undefined });
    expect(read).toMatchObject({ samplesMax: 333, isSampled: true });
    expect(read.periods[1]?.medianMs).toBe(medianMs);
    expect(read.periods[1]?.measured).toBe(320);
    expect(read.periods[2]).toMatchObject({ measured: 300, medianMs: 500 });
    expect(read.whole).toMatchObject({ measured: 620, medianMs });
  },
);
