import { afterAll, expect, test } from "vitest";
import { readLedgerDays } from "../../shared/credits/ledger-days.ts";
import { readHistory } from "../../api/ledger/history.ts";
import { correctCredit, creditRefusal, readCredit } from "../../shared/credits/ledger.ts";
import { spentIn } from "../../shared/credits/limits.ts";
import { readStatement } from "../../api/ledger/statement.ts";
import { verifyLedger } from "../../commands/ledger.ts";
import { newId } from "../../shared/ids.ts";
import { changeLimits } from "../../api/organizations/limits.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { Service } from "../harness/processes/service.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { decidePatiently } from "../shared/credits/decide-patiently.ts";

/** Corrections of a balance: what they add or take away, that they count once, and that they are no spending. */

const service = await Service.start({ apis: 0, workers: 0 });
afterAll(() => service.stop());

const correction = (organizationId: string, mils: number, grantId = newId("correction")) => ({
  organizationId,
  grantId,
  mils,
  reason: "test",
});
const correct = (...args: Parameters<typeof correction>) => correctCredit(service.database, correction(...args));
const balanceOf = async (organizationId: string) =>
  (await readCredit(service.database, organizationId))?.balance.balanceMils;

/** Charges searches of 5 mils each. @returns how many were charged, not refused. */
async function charge(organizationId: string, searches: number): Promise<number> {
  const requests = Array.from({ length: searches }, () => chargeOf(organizationId));
  const decisions = await decidePatiently(service.database, requests);
  return [...decisions.values()].filter(({ kind }) => kind === "charge").length;
}

test("a correction adds credit or takes it away, down to 0 and not below", async () => {
  const { organizationId } = await service.organization({ creditMils: 100 });
  expect(await correct(organizationId, 50)).toEqual({ fresh: true, balanceMils: 150, version: 2 });
  expect(await correct(organizationId, -150)).toEqual({ fresh: true, balanceMils: 0, version: 3 });
  const refused = await correct(organizationId, -1).catch((error: unknown) => creditRefusal("correction", error));
  expect(refused).toContain("A balance is at least 0");
  expect(await balanceOf(organizationId)).toBe(0);
  expect(await correct(newId("org"), 1)).toBeUndefined();
});

test("a correction counts once, also at the same time, and its id belongs to one organization", async () => {
  const { organizationId } = await service.organization({ creditMils: 100 });
  const id = `invoice of ${organizationId}`;
  const all = await Promise.all(Array.from({ length: 5 }, () => correct(organizationId, -30, id)));
  expect(all.filter((corrected) => corrected?.fresh)).toHaveLength(1);
  expect(await balanceOf(organizationId)).toBe(70);
  const other = await service.organization({ creditMils: 100 });
  const refused = await correct(other.organizationId, -30, id).catch((error: unknown) =>
    creditRefusal("correction", error),
  );
  expect(refused).toBe("This correction id was used for another organization.");
});

test("charges and corrections at the same time take no more than there is", async () => {
  const { organizationId } = await service.organization({ creditMils: 100 });
  const tries = Array.from({ length: 10 }, () => [
    charge(organizationId, 2),
    correct(organizationId, -10).then(
      () => 2,
      () => 0,
    ),
  ]).flat();
  const taken = (await Promise.all(tries)).reduce((sum, count) => sum + count, 0);
  expect(taken).toBe(20);
  expect(await balanceOf(organizationId)).toBe(0);
});

test("a correction is decided on the balance after a change that is under way", async () => {
  const { organizationId } = await service.organization({ creditMils: 100 });
  await asOwner(service.databaseUrl, async (client) => {
    const { rows } = await client.query("select pg_backend_pid() as pid");
    await client.query("begin");
    await client.query("select change_credit('grant', $1, $2, 50, 'test')", [organizationId, newId("grant")]);
    const corrected = correct(organizationId, -20);
    const waiting = "select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))";
    await service.until(async () => (await service.database.query(waiting, [rows[0].pid])).rowCount === 1);
    await client.query("commit");
    expect(await corrected).toMatchObject({ fresh: true, balanceMils: 130 });
  });
});

test("a correction is no spending, whether a limit was set before it or after it", async () => {
  const { organizationId } = await service.organization({ creditMils: 1_000 });
  const spent = async () => {
    const { spending = "" } = (await readCredit(service.database, organizationId))?.balance ?? {};
    return [spentIn("day", spending), spentIn("month", spending)];
  };
  await charge(organizationId, 3);
  await correct(organizationId, -400);
  await changeLimits(service.database, "organization", organizationId, { dayMils: 100, monthMils: 100 });
  expect(await spent()).toEqual([15, 15]);
  await correct(organizationId, -300);
  await correct(organizationId, 25);
  expect(await charge(organizationId, 1)).toBe(1);
  expect(await spent()).toEqual([20, 20]);
  expect(await verifyLedger(service.database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
});

test("days, history and statement tell corrections from charges and grants, and the statement adds up", async () => {
  const { organizationId } = await service.organization({ creditMils: 1_000 });
  await charge(organizationId, 2);
  await correct(organizationId, -300, "c1");
  await correct(organizationId, 40, "c2");
  const today = (await readLedgerDays(service.database, organizationId, { days: 2 })).at(-1);
  expect(today).toMatchObject({ charges: 2, chargedMils: 10, grantedMils: 1_000, correctedMils: -260 });
  const history = await readHistory(service.database, organizationId, { filter: "grants", limit: 10 });
  expect(history.entries).toMatchObject([
    { outcome: "corrected", correctionId: "c2", correctedMils: 40, note: "test" },
    { outcome: "corrected", correctionId: "c1", correctedMils: -300 },
    { outcome: "granted", grantedMils: 1_000 },
  ]);
  const month = today?.day.slice(0, 7) ?? "";
  const statement = await readStatement(service.database, organizationId, month);
  expect(statement).toMatchObject({ addedMils: 1_000, correctedMils: -260, chargedMils: 10, closingMils: 730 });
  expect(statement.credits.map(({ kind, mils }) => [kind, mils])).toEqual([
    ["grant", 1_000],
    ["correction", -300],
    ["correction", 40],
  ]);
  expect(await balanceOf(organizationId)).toBe(730);
});
