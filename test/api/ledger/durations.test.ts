import { afterAll, expect, test } from "vitest";
import { readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { newId } from "../../../shared/ids.ts";
import { readDurations } from "../../../api/ledger/durations.ts";
import { insertSearches } from "../../../shared/search-log/search-log.ts";
import { backdateLedger, countRefunds } from "../../harness/fixtures/backdate-ledger.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

const opened = await openFreshDatabase({ timeZone: "Pacific/Auckland" });
afterAll(opened.close);

const newOrganization = () => createPayer(opened.database);

/** Searches that were not charged, as ledger and log have them. */
async function search(organizationId: string, searches: { at: string; durationMs: number; tokenId: string }[]) {
  const made = searches.map(({ at, ...fields }) => ({ ...fields, requestId: requestIdAt(Date.parse(at)), at }));
  await backdateLedger(
    opened.url,
    organizationId,
    made.map(({ at }) => ({ at: new Date(at), kind: "refund", reason: "provider_unavailable" })),
  );
  const asked = { organizationId, keyHash: undefined, query: query(), trace: undefined };
  await insertSearches(
    opened.database,
    made.map(({ requestId, durationMs, tokenId }) => ({ ...asked, requestId, durationMs, tokenId })),
  );
}

test("each day or hour has the median and the 95th percentile of its searches, of all tokens or of one", async () => {
  const organizationId = await newOrganization();
  const tokenId = newId("tok");
  await search(organizationId, [
    ...Array.from({ length: 100 }, (_, nth) => ({ at: "2026-03-01T23:59:59.999Z", durationMs: nth + 1, tokenId })),
    { at: "2026-03-03T00:00:00.000Z", durationMs: 7, tokenId: newId("tok") },
    { at: "2026-03-03T01:00:00.000Z", durationMs: 9, tokenId },
  ]);
  const days = await readLedgerDays(opened.database, organizationId, { from: "2026-03-01", days: 3 });
  const read = (wanted: string | undefined) =>
    readDurations(opened.database, organizationId, { days, tokenId: wanted });
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
  const hours = await readLedgerDays(opened.database, organizationId, { from: "2026-03-03", days: 2, unit: "hour" });
  expect(await readDurations(opened.database, organizationId, { days: hours, tokenId: undefined })).toMatchObject({
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
    const organizationId = await newOrganization();
    // Of 10,000 searches on March 2, 6,000 took 1,000 ms, within ten minutes; the others, all day long, took 10 ms. The 300
    // of March 3, all of which are read, took 500 ms: unweighted, they would be the median of the range.
    await asOwner(opened.url, async (client) => {
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
    const days = await readLedgerDays(opened.database, organizationId, { from: "2026-03-01", days: 90 });
    const read = await readDurations(opened.database, organizationId, { days, tokenId: undefined });
    expect(read).toMatchObject({ samplesMax: 333, isSampled: true });
    expect(read.periods[1]?.medianMs).toBe(medianMs);
    expect(read.periods[1]?.measured).toBe(320);
    expect(read.periods[2]).toMatchObject({ measured: 300, medianMs: 500 });
    expect(read.whole).toMatchObject({ measured: 620, medianMs });
  },
);
