import { expect, test } from "vitest";
import { CreditCheck } from "../../api/search/credit-check.ts";
import { admit } from "../../shared/credits/admit.ts";
import { confirmDelivered } from "../../shared/credits/deliveries.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { type Decision, decideSettlements } from "../../shared/credits/ledger.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { request } from "../shared/credits/hold-requests.ts";

/** Two workers settle at the same time, and the newer balance reaches Redis first: it contains both charges. */

const priceMils = 5;
const service = await usualService();

async function hold(organizationId: string): Promise<string> {
  const wanted = request(organizationId, { budgetMs: 60_000 });
  expect(await admit(service.redis, wanted)).toMatchObject({ outcome: "held" });
  return wanted.requestId;
}

async function charge(organizationId: string, requestId: string): Promise<Decision> {
  const decided = await decideSettlements(service.database, [chargeOf(organizationId, { requestId, priceMils })]);
  const decision = decided.get(requestId);
  if (!decision) throw new Error("not decided");
  await confirmDelivered(service.database, [requestId]); // The service comes to rest again.
  return decision;
}

test("a search that is covered is admitted while a newer balance stands beside the hold of a search it contains", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 3 * priceMils });
  await storeBalance(service.redis, organizationId, { balanceMils: 3 * priceMils, version: 1 });
  const [first, second] = [await hold(organizationId), await hold(organizationId)];
  const older = await charge(organizationId, first);
  const newer = await charge(organizationId, second);
  await settleHolds(service.redis, organizationId, newer.balance, [{ requestId: second }]);

  const covered = await service.search(token, { keyword: "covered" });
  expect(covered).toMatchObject({ status: 200, body: { creditsCharged: priceMils, creditsRemaining: 0 } });
  // The decided search keeps its concurrency slot until its own message arrives.
  expect(await service.holdsOf(organizationId)).toEqual({ open: 1, heldMils: 0 });
  await settleHolds(service.redis, organizationId, older.balance, [{ requestId: first }]);
  expect(await service.holdsOf(organizationId)).toEqual({ open: 0, heldMils: 0 });
  const refused = await service.search(token, { keyword: "not covered" });
  expect(refused).toMatchObject({ status: 402, body: { error: { details: { availableMils: 0, heldMils: 0 } } } });
  expect(await service.verify()).toMatchObject({ ok: true });
});

test("a refusal a moment before does not refuse a search that is covered by now", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 2 * priceMils });
  await storeBalance(service.redis, organizationId, { balanceMils: 2 * priceMils, version: 1 });
  const [first, second] = [await hold(organizationId), await hold(organizationId)];
  const refused = await service.search(token, { keyword: "all is held" });
  expect(refused).toMatchObject({ status: 402, body: { error: { details: { heldMils: 2 * priceMils } } } });

  const given = await decideSettlements(service.database, [
    { requestId: first, organizationId, wanted: "refund", reason: "provider_unavailable" },
  ]);
  const newer = await charge(organizationId, second);
  expect(given.get(first)).toMatchObject({ kind: "refund" });
  await settleHolds(service.redis, organizationId, newer.balance, [{ requestId: second }]);
  expect((await service.search(token, { keyword: "covered" })).status).toBe(200);
  await settleHolds(service.redis, organizationId, newer.balance, [{ requestId: first }]);
});

test("a hold that ends between the refusal of Redis and the look into Postgres does not refuse a search", async () => {
  const { organizationId } = await service.organization({ creditMils: priceMils });
  const balance = { balanceMils: priceMils, version: 1 };
  await storeBalance(service.redis, organizationId, balance);
  const { redis, database } = service;
  const check = new CreditCheck({ redis, database, topupUrl: "/billing" });
  const refused = () => {
    const shown = { window: { used: 0, leftMs: 0 }, availableMils: 0, heldMils: priceMils, version: 1 };
    return check.correct({ organizationId, tokenId: "tok_of_a_test" }, { outcome: "insufficient_credit", ...shown });
  };
  // Redis showed a hold that it has dropped by now.
  expect(await refused()).toBe("outdated");
  const requestId = await hold(organizationId);
  expect(await refused()).toMatchObject({ balance });
  await settleHolds(service.redis, organizationId, balance, [{ requestId }]);
});
