import { expect, test } from "vitest";
import { reverseCharges } from "../../../shared/credits/deliveries.ts";
import { decideSettlements, grantCredit } from "../../../shared/credits/ledger.ts";
import { verifyLedger } from "../../../shared/credits/verify.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { changeLimits } from "../../../shared/organizations/limits.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { issueToken } from "../../../shared/organizations/tokens.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** The decisions on searches of a new organization, one after the other: each alone, or beside a search of no organization. */
async function decideInTurn(database: Database, isAlone: boolean) {
  const { organizationId = "" } = (await createOrganization(database, { name: "Test", planCode: "payg" })) ?? {};
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  const addCredit = (mils: number) =>
    grantCredit(database, { organizationId, grantId: newId("grant"), mils, reason: "test" });
  const charge = async (requestId = newId("req"), owner = organizationId) => {
    const search = { requestId, organizationId: owner, tokenId, wanted: "charge" as const, priceMils: 5 };
    const beside = { ...search, requestId: newId("req"), organizationId: "org_unknown" };
    const decided = await decideSettlements(database, isAlone ? [search] : [search, beside]);
    const { kind, chargedMils, reason, isNew, reversed, balance, token } = decided.get(requestId) ?? {};
    return { kind, chargedMils, reason, isNew, reversed, balance, spent: token?.spending, version: token?.version };
  };
  await addCredit(12);
  const first = newId("req");
  const decisions = { charged: await charge(first), repeated: await charge(first) };
  await reverseCharges(database, [{ organizationId, requestId: first }], "engine_timeout");
  const covered = { reversed: await charge(first), second: await charge(), third: await charge() };
  const uncovered = { short: await charge(), unknown: await charge(newId("req"), "org_unknown") };
  await addCredit(50);
  await changeLimits(database, "token", tokenId, { dayMils: 16 });
  const ofToken = { within: await charge(), beyond: await charge() };
  await changeLimits(database, "token", tokenId, { dayMils: null });
  await changeLimits(database, "organization", organizationId, { monthMils: 21 });
  return { ...decisions, ...covered, ...uncovered, ofToken, last: await charge(), over: await charge() };
}

test("a search that ends alone is decided like one in a batch", async () => {
  const { database, close } = await openFreshDatabase();
  const alone = await decideInTurn(database, true);
  expect(alone).toEqual(await decideInTurn(database, false));
  expect(alone).toMatchObject({
    charged: { kind: "charge", chargedMils: 5, isNew: true, balance: { balanceMils: 7, version: 2 } },
    repeated: { kind: "charge", isNew: false, reversed: false },
    reversed: { kind: "charge", isNew: false, reversed: true },
    third: { kind: "charge", balance: { balanceMils: 2 } },
    short: { kind: "refund", reason: "out_of_credits", chargedMils: 0 },
    unknown: { kind: undefined },
    ofToken: { within: { kind: "charge" }, beyond: { kind: "refund", reason: "token_daily_limit" } },
    last: { kind: "charge" },
    over: { kind: "refund", reason: "monthly_limit" },
  });
  expect(await verifyLedger(database, undefined)).toMatchObject({ ok: true, violations: [] });
  await close();
});

test("searches that end alone at the same time charge each once, without gap or overdraft", async () => {
  const { database, close } = await openFreshDatabase();
  const { organizationId = "" } = (await createOrganization(database, { name: "Test", planCode: "payg" })) ?? {};
  await grantCredit(database, { organizationId, grantId: newId("grant"), mils: 52, reason: "test" });
  const searches = Array.from({ length: 12 }, () => newId("req")).flatMap((requestId) => [requestId, requestId]);
  const decided = await Promise.all(
    searches.map((requestId) =>
      decideSettlements(database, [{ requestId, organizationId, wanted: "charge", priceMils: 5 }]),
    ),
  );
  const decisions = decided.flatMap((batch) => [...batch.values()]);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "charge")).toHaveLength(10);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "refund")).toHaveLength(2);
  expect(await verifyLedger(database, undefined)).toMatchObject({ ok: true, violations: [] });
  await close();
});
