import { afterAll, beforeAll, expect, test } from "vitest";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { topUp } from "../../../api/topups/credit-payment.ts";
import { verifyLedger } from "../../../commands/ledger-verify.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { createOrganization, assignPlan, showOrganization } from "../../../shared/organizations/organizations.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

let database: Database;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ database, close } = await openFreshDatabase());
});
afterAll(async () => {
  expect(await verifyLedger(database, undefined)).toMatchObject({ ok: true, violations: [] });
  await close();
});

async function organization(planCode = "free"): Promise<string> {
  const made = await createOrganization(database, { name: "Test", planCode });
  return made?.organizationId ?? "";
}

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

test("a grant of an operator is not a first top-up, and a first top-up changes no plan but free", async () => {
  const organizationId = await organization();
  await grantCredit(database, { organizationId, grantId: newId("grant"), mils: 1, reason: "top-up" });
  expect(await topUp(database, { organizationId, grantId: newId("grant"), mils: 1 })).toMatchObject({
    planChanged: true,
  });
  const paying = await organization("payg");
  const first = await topUp(database, { organizationId: paying, grantId: newId("grant"), mils: 1 });
  expect(first).toMatchObject({ fresh: true, planChanged: false });
});

test("a payment id is refused for a second organization, and an unknown organization gets no credit", async () => {
  const grantId = newId("grant");
  const [one, other] = [await organization(), await organization()];
  await topUp(database, { organizationId: one, grantId, mils: 7 });
  await expect(topUp(database, { organizationId: other, grantId, mils: 7 })).rejects.toThrow("one_entry_per_grant");
  expect(await showOrganization(database, other)).toMatchObject({ plan: "free", balanceMils: 0 });
  expect(await topUp(database, { organizationId: newId("org"), grantId: newId("grant"), mils: 7 })).toBeUndefined();
});
