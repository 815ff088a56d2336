import { afterAll, expect, test } from "vitest";
import { readLedgerDays } from "../../../shared/credits/ledger-days.ts";
import { entriesMax, readTokenDays } from "../../../api/ledger/token-days.ts";
import { newId } from "../../../shared/ids.ts";
import { type BackdatedEntry, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

// In another time zone than the one that the days are cut in.
const opened = await openFreshDatabase({ timeZone: "Pacific/Auckland" });
afterAll(opened.close);

const newOrganization = () => createPayer(opened.database);

const [shop, blog] = [newId("tok"), newId("tok")];
const at = (time: string) => new Date(`2026-03-${time}Z`);
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
  const organizationId = await newOrganization();
  const credited = newId("req");
  const past: BackdatedEntry[] = [
    { at: at("01T00:00"), kind: "grant", mils: 1_000 },
    { at: at("01T12:00"), kind: "charge", mils: 5, tokenId: shop },
    { at: at("01T12:01"), kind: "charge", mils: 7, tokenId: blog },
    { at: at("01T23:59"), kind: "charge", mils: 9, tokenId: shop, requestId: credited },
    {
      at: at("03T00:00"),
      kind: "reversal",
      mils: 9,
      tokenId: shop,
      requestId: credited,
      reason: "caller_disconnected",
    },
    { at: at("03T00:01"), kind: "refund", reason: "provider_unavailable", tokenId: shop },
    { at: at("03T00:02"), kind: "charge", mils: 11, tokenId: blog },
  ];
  await backdateLedger(opened.url, organizationId, past);
  const days = await readLedgerDays(opened.database, organizationId, { from: "2026-03-01", days: 4 });
  expect(await readTokenDays(opened.database, organizationId, shop, days)).toEqual({
    figures: [
      { ...none, day: "2026-03-01", charges: 2, chargedMils: 14 },
      { ...none, day: "2026-03-02" },
      { ...none, day: "2026-03-03", refunds: 1, reversals: 1, reversedMils: 9 },
      { ...none, day: "2026-03-04" },
    ],
    countedSince: undefined,
    hasTokenless: false,
  });
  await backdateLedger(opened.url, organizationId, [{ at: at("04T00:00"), kind: "refund", reason: "swept" }]);
  const after = await readLedgerDays(opened.database, organizationId, { from: "2026-03-03", days: 2 });
  expect(await readTokenDays(opened.database, organizationId, blog, after)).toMatchObject({
    figures: [
      { charges: 1, chargedMils: 11 },
      { charges: 0, refunds: 0 },
    ],
    hasTokenless: true,
  });
});

test("of a longer ledger the newest 100,000 entries are counted, from the first day that has one of them", async () => {
  const organizationId = await newOrganization();
  // Two entries a second up to the end of March 5.
  const entries = entriesMax + 10;
  await asOwner(opened.url, (client) =>
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
  const days = await readLedgerDays(opened.database, organizationId, { from: "2026-03-02", days: 4 });
  const { figures, countedSince } = await readTokenDays(opened.database, organizationId, shop, days);
  expect(figures.map(({ day }) => day)).toEqual(["2026-03-05"]);
  expect(figures[0]).toMatchObject({ charges: entriesMax, chargedMils: entriesMax });
  expect(countedSince).toEqual(new Date(Date.parse("2026-03-06T00:00Z") - entriesMax * 500));
});
