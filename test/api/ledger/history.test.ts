import { afterAll, expect, onTestFinished, test } from "vitest";
import { type DayFigures, readLedgerDays, withoutPlace } from "../../../shared/credits/ledger-days.ts";
import { type HistoryFilter, historyFilters, readHistory } from "../../../api/ledger/history.ts";
import { correctCredit, decideSettlements, grantCredit } from "../../../shared/credits/ledger.ts";
import { reverseCharges } from "../../../shared/credits/deliveries.ts";
import { newId } from "../../../shared/ids.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { aMonth, type BackdatedEntry, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";

const { database, url } = await openFreshDatabase(afterAll);

const dayMs = 24 * 3_600_000;
const dayOf = (at: Date) => at.toISOString().slice(0, 10);

/** The same figures, counted entry by entry. */
function countedDays(past: readonly BackdatedEntry[], now: Date, days: number): DayFigures[] {
  return Array.from({ length: days }, (_, at) => {
    const day = dayOf(new Date(now.getTime() - (days - 1 - at) * dayMs));
    const of = (kind: BackdatedEntry["kind"]) => past.filter((entry) => entry.kind === kind && dayOf(entry.at) === day);
    const mils = (kind: BackdatedEntry["kind"]) =>
      of(kind).reduce((sum, entry) => sum + ("mils" in entry ? entry.mils : 0), 0);
    return {
      day,
      charges: of("charge").length,
      refunds: of("refund").length,
      reversals: of("reversal").length,
      chargedMils: mils("charge"),
      reversedMils: mils("reversal"),
      grantedMils: mils("grant"),
      correctedMils: 0,
    };
  });
}

const histories: { title: string; past: (now: Date) => BackdatedEntry[] }[] = [
  { title: "a whole month", past: (now) => aMonth(now) },
  { title: "no entries", past: () => [] },
  { title: "one entry today", past: (now) => [{ at: now, kind: "grant", mils: 7 }] },
  {
    title: "only entries older than thirty days",
    past: (now) => [{ at: new Date(now.getTime() - 40 * dayMs), kind: "grant", mils: 7 }],
  },
  {
    title: "days without entries, and entries exactly at midnight",
    past: (now) => {
      const midnight = new Date(`${dayOf(new Date(now.getTime() - 3 * dayMs))}T00:00:00Z`);
      return [
        { at: new Date(now.getTime() - 35 * dayMs), kind: "grant", mils: 100 },
        { at: new Date(midnight.getTime() - 1), kind: "charge", mils: 5 },
        { at: midnight, kind: "charge", mils: 3 },
        { at: midnight, kind: "refund", reason: "provider_unavailable" },
      ];
    },
  },
];

test.each(histories)("the figures of thirty days agree with the ledger: $title", async ({ past }) => {
  const organizationId = await createPayer(database);
  // The same instant for both, so that midnight cannot fall between them.
  const [{ now }] = (await database.query("select now()")).rows;
  const entries = past(now);
  await backdateLedger(url, organizationId, entries);
  const read = await readLedgerDays(database, organizationId, { days: 30 });
  expect(read.map(withoutPlace)).toEqual(countedDays(entries, now, 30));
});

test.each(["Europe/Berlin", "America/New_York"])(
  "days are UTC days if the time zone of Postgres is %s",
  async (zone) => {
    const elsewhere = await openFreshDatabase(onTestFinished, { timeZone: zone });
    const organizationId = await createPayer(elsewhere.database);
    const [{ now }] = (await elsewhere.database.query("select now()")).rows;
    // More than a year, so that both clock changes are in it. Entries at both ends of each day show an hour that is off.
    const days = 400;
    const today = new Date(`${dayOf(now)}T00:00:00Z`).getTime();
    const entries = Array.from({ length: days }, (_, at) => today - (days - 1 - at) * dayMs).flatMap(
      (midnight, at): BackdatedEntry[] => [
        { at: new Date(midnight), kind: "grant", mils: at + 1 },
        { at: new Date(midnight + dayMs - 1), kind: "refund", reason: "provider_unavailable" },
      ],
    );
    await backdateLedger(elsewhere.url, organizationId, entries);
    const read = await readLedgerDays(elsewhere.database, organizationId, { days });
    expect(read.map(withoutPlace)).toEqual(countedDays(entries, now, days));
  },
);

test("the functions of the database write the entries from which days are counted", async () => {
  const organizationId = await createPayer(database, 1_000);
  const [charged, reversed, refunded] = [newId("req"), newId("req"), newId("req")];
  await decideSettlements(database, [
    chargeOf(organizationId, { requestId: charged }),
    chargeOf(organizationId, { requestId: reversed, priceMils: 7 }),
    { requestId: refunded, organizationId, wanted: "refund", reason: "provider_unavailable" },
  ]);
  await reverseCharges(database, [{ organizationId, requestId: reversed }], "caller_disconnected");
  await correctCredit(database, { organizationId, grantId: "correction", mils: -260, reason: "granted twice" });
  const days = await readLedgerDays(database, organizationId, { days: 30 });
  expect(days.at(-1)).toMatchObject({
    charges: 2,
    refunds: 1,
    reversals: 1,
    chargedMils: 12,
    reversedMils: 7,
    grantedMils: 1_000,
    correctedMils: -260,
  });

  const all = await readHistory(database, organizationId, { filter: "all", limit: 10 });
  expect(all.entries).toMatchObject([
    { outcome: "corrected", correctionId: "correction", correctedMils: -260, note: "granted twice" },
    { outcome: "refunded", requestId: refunded, reason: "provider_unavailable" },
    { outcome: "reversed", requestId: reversed, chargedMils: 7, reason: "caller_disconnected" },
    { outcome: "charged", requestId: charged, chargedMils: 5 },
    { outcome: "granted", grantedMils: 1_000, note: "test" },
  ]);
});

const belongs: Record<HistoryFilter, (outcome: string) => boolean> = {
  all: () => true,
  charged: (outcome) => outcome === "charged",
  refunded: (outcome) => outcome === "refunded",
  reversed: (outcome) => outcome === "reversed",
  grants: (outcome) => outcome === "granted",
};

test.each(historyFilters)(
  "a time span of the history filtered by %s has what the whole history has of it, page by page",
  async (filter) => {
    const organizationId = await createPayer(database);
    const other = await createPayer(database);
    const now = new Date();
    await backdateLedger(url, organizationId, aMonth(now));
    await backdateLedger(url, other, aMonth(now));
    const wholeOf = async (of: HistoryFilter) =>
      (await readHistory(database, organizationId, { filter: of, limit: 10_000 })).entries;
    const whole = await wholeOf(filter);
    expect(whole).toEqual((await wholeOf("all")).filter(({ outcome }) => belongs[filter](outcome)));
    expect(whole.length).toBeGreaterThan(1);
    // A reversal counts by its own time among those that were credited back, and with its charge in the whole history; here both agree.
    const time = (daysAgo: number) => new Date(Date.parse(dayOf(now)) - daysAgo * dayMs);
    for (const [since, until] of [
      [time(20), time(3)],
      [time(9), time(8)],
      [time(5), undefined],
      [undefined, time(21)],
      [time(-2), undefined],
      [undefined, time(60)],
      [time(3), time(20)],
    ]) {
      const paged: typeof whole = [];
      for (let before: string | undefined = ""; before !== undefined; ) {
        const wanted = { filter, limit: 50, since, until, before: before || undefined };
        const page = await readHistory(database, organizationId, wanted);
        paged.push(...page.entries);
        before = page.older;
      }
      const isIn = ({ at }: { at: Date }) => (!since || at >= since) && (!until || at < until);
      expect(paged).toEqual(whole.filter(isIn));
    }
  },
);

test("pages of the history have no gap and no repeat, whatever comes meanwhile", async () => {
  const [organizationId, other] = [await createPayer(database), await createPayer(database)];
  const past = aMonth(new Date(), 2);
  await backdateLedger(url, organizationId, past);
  await backdateLedger(url, other, aMonth(new Date(), 2));
  const read = (limit: number, before?: string) =>
    readHistory(database, organizationId, { filter: "all", limit, before });

  const { entries: whole } = await read(10_000);
  expect(whole).toHaveLength(past.filter(({ kind }) => kind !== "reversal").length);
  const paged: typeof whole = [];
  let before: string | undefined;
  for (;;) {
    const page = await read(7, before);
    paged.push(...page.entries);
    before = page.older;
    if (before === undefined) break;
    // New entries and refunds do not move the pages that follow.
    await grantCredit(database, { organizationId, grantId: newId("grant"), mils: 1, reason: "meanwhile" });
    await decideSettlements(database, [
      { organizationId, requestId: newId("req"), wanted: "refund", reason: "provider_unavailable" },
    ]);
  }
  const ids = (entries: typeof whole) =>
    entries.map((entry) => ("requestId" in entry ? entry.requestId : "grantId" in entry ? entry.grantId : ""));
  expect(ids(paged)).toEqual(ids(whole));
  const times = paged.map(({ at }) => at.getTime());
  expect(times).toEqual(times.toSorted((one, next) => next - one));
});

test("the credit of an organization that has most of the ledger is read without its charges", async () => {
  const { database: one, url: itsUrl } = await openFreshDatabase(onTestFinished, { sizeMax: 1 });
  const organizationId = await createPayer(one, 1);
  await asOwner(itsUrl, (owner) =>
    owner.query(`
      insert into organizations (id, name, plan_code) select 'org_0' || lpad(n::text, 25, '0'), 'Small', 'free' from generate_series(1, 3000) n;
      insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, grant_id)
        select id, 1, 'grant', 0, 0, id from organizations where name = 'Small';
      insert into ledger_entries (organization_id, version, kind, amount_mils, balance_after_mils, request_id, token_id)
        select '${organizationId}', 1 + n, 'charge', 0, 1, n, 'a token' from generate_series(1, 60000) n;
      update organizations set version = 60001 where id = '${organizationId}';
      analyze ledger_entries`),
  );
  const entriesRead = async () => {
    await one.query("select pg_stat_force_next_flush()");
    const statement =
      "select (seq_tup_read + idx_tup_fetch)::int as entries from pg_stat_user_tables where relname = 'ledger_entries'";
    return Number((await one.query(statement)).rows[0].entries);
  };
  const before = await entriesRead();
  await readHistory(one, organizationId, { filter: "grants", limit: 25 });
  expect((await entriesRead()) - before).toBeLessThan(100);
});
