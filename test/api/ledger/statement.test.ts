import { afterAll, expect, test } from "vitest";
import { readStatement, statementMonths } from "../../../api/ledger/statement.ts";
import { newId } from "../../../shared/ids.ts";
import { type BackdatedEntry, backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** The statement of a month, compared with the entries of that month counted one by one. */

const { database, url } = await openFreshDatabase(afterAll);

const [first, second] = [newId("req"), newId("req")];
/** Entries at both ends of months, with a charge that the next month gives back, corrections, and a month without any. */
const past: readonly BackdatedEntry[] = [
  { at: new Date("2025-12-31T23:59:59.999Z"), kind: "grant", mils: 10_000, reason: "bank transfer" },
  { at: new Date("2026-01-01T00:00:00Z"), kind: "charge", mils: 5 },
  { at: new Date("2026-01-15T12:00:00Z"), kind: "refund", reason: "provider_unavailable" },
  { at: new Date("2026-01-20T12:00:00Z"), kind: "correction", mils: -300, reason: "granted twice" },
  { at: new Date("2026-01-31T23:59:59.999Z"), kind: "charge", mils: 7, requestId: first },
  { at: new Date("2026-02-01T00:00:00Z"), kind: "reversal", mils: 7, requestId: first, reason: "undelivered" },
  { at: new Date("2026-02-01T00:00:00Z"), kind: "correction", mils: 40, reason: "too much taken" },
  { at: new Date("2026-02-28T10:00:00Z"), kind: "grant", mils: 25_000, reason: "top-up" },
  { at: new Date("2026-02-28T23:00:00Z"), kind: "charge", mils: 11, requestId: second },
  {
    at: new Date("2026-02-28T23:00:01Z"),
    kind: "reversal",
    mils: 11,
    requestId: second,
    reason: "caller_disconnected",
  },
  { at: new Date("2026-02-28T23:59:59.999Z"), kind: "correction", mils: -9_000, reason: "paid back" },
  { at: new Date("2026-04-02T00:00:00Z"), kind: "charge", mils: 13 },
  { at: new Date("2026-05-01T00:00:00Z"), kind: "correction", mils: -1, reason: "rounding" },
];

const sumOf = (entries: readonly BackdatedEntry[], kind: BackdatedEntry["kind"]) =>
  entries.reduce((sum, entry) => (entry.kind === kind && "mils" in entry ? sum + entry.mils : sum), 0);
const balanceAt = (entries: readonly BackdatedEntry[]) =>
  sumOf(entries, "grant") + sumOf(entries, "correction") + sumOf(entries, "reversal") - sumOf(entries, "charge");

test("each statement agrees with the entries of its month, and begins where the one before ended", async () => {
  const organizationId = await createPayer(database);
  await backdateLedger(url, organizationId, past);
  let closingMils = 0;
  for (const month of ["2025-11", "2025-12", "2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]) {
    const own = past.filter(({ at }) => at.toISOString().startsWith(month));
    const before = past.filter(({ at }) => at.toISOString().slice(0, 7) < month);
    const statement = await readStatement(database, organizationId, month);
    expect(statement).toMatchObject({
      month,
      openingMils: balanceAt(before),
      addedMils: sumOf(own, "grant"),
      correctedMils: sumOf(own, "correction"),
      chargedMils: sumOf(own, "charge"),
      reversedMils: sumOf(own, "reversal"),
      closingMils: balanceAt([...before, ...own]),
      unlistedMils: 0,
    });
    expect(statement.openingMils).toBe(closingMils);
    closingMils = statement.closingMils;
    expect(statement.credits.map(({ kind, at, mils, note }) => ({ kind, at, mils, reason: note }))).toEqual(
      own.filter(({ kind }) => kind === "grant" || kind === "correction"),
    );
    expect(statement.days.map(({ day }) => day)).toEqual([
      ...new Set(own.map(({ at }) => at.toISOString().slice(0, 10))),
    ]);
  }
  const { rows } = await database.query("select balance_mils from organizations where id = $1", [organizationId]);
  expect(closingMils).toBe(rows[0].balance_mils);
});

test("a month's statement stays as it is, and ends where the next begins, however many entries that waited at its end follow", async () => {
  const organizationId = await createPayer(database);
  const add = (entries: readonly { secondsAfter: number; mils?: number }[]) =>
    backdateLedger(
      url,
      organizationId,
      entries.map(({ secondsAfter, mils = 1 }) => {
        return { kind: "grant", at: new Date(Date.UTC(2026, 3, 1, 0, 0, secondsAfter)), mils };
      }),
    );
  await add([...Array.from({ length: 20 }, (_, n) => ({ secondsAfter: n - 90 })), { secondsAfter: 0 }]);
  const read = () => readStatement(database, organizationId, "2026-03");
  const before = await read();
  expect(before).toMatchObject({ addedMils: 20, closingMils: 20 });
  for (const late of Array.from({ length: 12 }, (_, n) => n)) {
    await add([{ secondsAfter: late % 3 === 2 ? late : -1, mils: 100 }]);
    expect(await read()).toEqual(before);
    const next = await readStatement(database, organizationId, "2026-04");
    expect(next).toMatchObject({ openingMils: 20, closingMils: 20 + 1 + (late + 1) * 100 });
  }
});

test("of a month with more than 1,000 grants, the rest is one sum", async () => {
  const organizationId = await createPayer(database);
  const at = new Date("2026-03-10T00:00:00Z");
  const grants = Array.from({ length: 1_003 }, () => ({ at, kind: "grant", mils: 2 }) as const);
  await backdateLedger(url, organizationId, grants);
  const { credits, addedMils, unlistedMils, closingMils } = await readStatement(database, organizationId, "2026-03");
  expect([credits.length, addedMils, unlistedMils, closingMils]).toEqual([1_000, 2_006, 6, 2_006]);
});

test("there are statements from the month in which the organization was created to this one, newest first", () => {
  const now = new Date("2026-02-28T23:59:59Z");
  expect(statementMonths(new Date("2025-11-30T23:59:59Z"), now)).toEqual(["2026-02", "2026-01", "2025-12", "2025-11"]);
  expect(statementMonths(new Date("2026-02-01T00:00:00Z"), now)).toEqual(["2026-02"]);
  // Created by a Postgres whose clock is ahead.
  expect(statementMonths(new Date("2026-03-01T00:00:01Z"), now)).toEqual(["2026-02"]);
});
