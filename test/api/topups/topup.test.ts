import { afterAll, expect, test } from "vitest";
import { topUp } from "../../../api/topups/credit-payment.ts";
import { verifyLedger } from "../../../commands/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { assignPlan, showOrganization } from "../../../shared/organizations/organizations.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

const { database, close } = await openFreshDatabase();
afterAll(async () => {
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  await close();
});

const organization = (planCode = "free") => createPayer(database, 0, planCode);

test("of thirty concurrent first top-ups each is credited, and one changes the plan", async () => {
  const organizationId = await organization();
  const ids = Array.from({ length: 10 }, () => newId("grant"));
  const paid = [...ids, ...ids, ...ids].map((grantId) => topUp(database, { organizationId, grantId, mils: 7 }));
  const topups = await Promise.all(paid);
  expect(topups.filter((one) => one?.fresh)).toHaveLength(10);
  expect(topups.filter((one) => one?.planChanged)).toHaveLength(1);
  expect(topups.filter((one) => one?.planChanged && !one.fresh)).toEqual([]);
  expect(await showOrganization(database, organizationId)).toMatchObject({
    plan: "payg",
    balanceMils: 70,
    ledgerEntries: 10,
  });
});

test("a repeat of the first top-up does not change the plan again", async () => {
  const organizationId = await organization();
  const first = { organizationId, grantId: newId("grant"), mils: 7 };
  expect(await topUp(database, first)).toEqual({
    fresh: true,
    planChanged: true,
    balance: { balanceMils: 7, version: 1 },
  });
  await assignPlan(database, organizationId, "free");
  expect(await topUp(database, first)).toEqual({
    fresh: false,
    planChanged: false,
    balance: { balanceMils: 7, version: 1 },
  });
  expect(await topUp(database, { ...first, grantId: newId("grant") })).toMatchObject({
    fresh: true,
    planChanged: false,
  });
  expect(await showOrganization(database, organizationId)).toMatchObject({ plan: "free", balanceMils: 14 });
});
