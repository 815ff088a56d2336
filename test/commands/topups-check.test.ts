import { afterEach, expect, test } from "vitest";
import { newId } from "../../shared/ids.ts";
import { readLine } from "../harness/clients/admin.ts";
import { Operator } from "../harness/processes/operator.ts";
import { startStripeService } from "../harness/processes/stripe-stack.ts";
import { disconnect, refusal, stripeKey } from "../harness/stubs/stripe-stub.ts";

const { stub, service } = await startStripeService({ workers: 0 });
const operator = new Operator(service, stub.environment);
afterEach(() => {
  stub.sessions.length = 0;
});

const nothing = {
  sessions: 0,
  automatic: 0,
  credited: 0,
  creditedMils: 0,
  repeated: 0,
  refunded: 0,
  unpaid: 0,
  foreign: 0,
  notCredited: 0,
};
const daysAgo = (days: number) => Math.floor(Date.now() / 1_000) - days * 86_400;

test("a top-up whose event never arrived is found at Stripe and credited once", async () => {
  const { organizationId, token } = await service.organization({ plan: "free", creditMils: 0 });
  await service.usage(token);
  stub.paid(organizationId, 1_000);
  stub.paid(organizationId, 2_500, { created: daysAgo(13) });
  stub.paid(organizationId, 9_900, { created: daysAgo(15) });
  stub.paid(organizationId, 9_900, { payment_status: "unpaid" });
  stub.paid(organizationId, 9_900, { metadata: {} });
  const counts = { ...nothing, days: 14, sessions: 4, unpaid: 1, foreign: 1 };
  expect(await operator.run("credit", "topups-check")).toEqual({ ...counts, credited: 2, creditedMils: 35_000 });
  expect(await operator.run("credit", "topups-check")).toEqual({ ...counts, repeated: 2 });
  await expect.poll(async () => (await service.usage(token)).body).toEqual({ creditBalanceMils: 35_000, plan: "payg" });
  expect(await operator.run("credit", "topups-check", "--days", "16")).toMatchObject({ credited: 1, repeated: 2 });
});

test("a top-up that was refunded in full at Stripe is not credited, and earlier credit stays", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const credited = stub.paid(organizationId, 1_000);
  await operator.run("credit", "topups-check");
  const early = stub.paid(organizationId, 2_000);
  stub.paid(organizationId, 3_000);
  const foreign = stub.paid(organizationId, 4_000, { metadata: {} });
  for (const { id } of [credited, early, foreign]) stub.refunded.add(id);
  const counts = { ...nothing, days: 14, sessions: 4, refunded: 2, foreign: 1 };
  expect(await operator.run("credit", "topups-check")).toEqual({ ...counts, credited: 1, creditedMils: 30_000 });
  expect(await service.ledgerOf(organizationId)).toMatchObject([{ mils: 10_000 }, { mils: 30_000 }]);
});

test("an automatic top-up that is missing here, as after a restore, is found at Stripe and credited once", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const metadata = { serpmill_organization: organizationId, serpmill_mils: "10000" };
  const paymentId = newId("pay");
  const kept = stub.cards.keepPaid(1_000, { ...metadata, serpmill_auto_topup: paymentId });
  stub.cards.refunded.add(stub.cards.keepPaid(2_000, { ...metadata, serpmill_auto_topup: newId("pay") }).id);
  // Of a Checkout Session, and of something else that the operator sells.
  stub.cards.keepPaid(3_000, metadata);
  stub.cards.keepPaid(4_000, {});
  const counts = { ...nothing, days: 14, automatic: 2, refunded: 1 };
  expect(await operator.run("credit", "topups-check")).toEqual({ ...counts, credited: 1, creditedMils: 10_000 });
  expect(await operator.run("credit", "topups-check")).toEqual({ ...counts, repeated: 1 });
  const { rows } = await service.database.query(
    "select id, state, payment_intent_id as intent from auto_topup_payments",
  );
  expect(rows).toEqual([{ id: paymentId, state: "paid", intent: kept.id }]);
  stub.cards.intents.length = 0;
});

test("every page of a long list is read, even if one has to be requested twice", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  for (let at = 0; at < 230; at += 1) stub.paid(organizationId, 100);
  stub.calls.length = 0;
  stub.faults.push(disconnect);
  const found = await operator.run("credit", "topups-check");
  expect(found).toMatchObject({ sessions: 230, credited: 230, creditedMils: 230_000 });
  expect(stub.calls.filter(({ path }) => path === "/v1/checkout/sessions")).toHaveLength(4);
});

test("a session of an unknown organization is logged with exit code 1, also once another got its credit by hand; others are credited", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  stub.paid(organizationId, 100);
  const lost = stub.paid(newId("org"), 100);
  stub.paid(organizationId, 100);
  const { exitCode, stdout, stderr } = await operator.try("credit", "topups-check");
  expect(exitCode).toBe(1);
  expect(readLine(stdout)).toMatchObject({ sessions: 3, credited: 2, notCredited: 1 });
  expect(readLine(stderr)).toMatchObject({ grantId: lost.id, outcome: "unknown_organization" });
  const { organizationId: made } = await service.organization({ creditMils: 0 });
  await operator.run("credit", "grant", made, "1000", "--id", lost.id);
  const repeated = await operator.try("credit", "topups-check");
  expect(repeated.exitCode).toBe(1);
  expect(readLine(repeated.stdout)).toMatchObject({ repeated: 2, credited: 0, notCredited: 1 });
  expect(readLine(repeated.stderr)).toMatchObject({ grantId: lost.id, outcome: "unknown_organization" });
});

test("a session that the ledger refuses is logged with the reason, and the sessions after it are credited", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const full = await service.organization({ creditMils: Number.MAX_SAFE_INTEGER });
  const other = await service.organization({ creditMils: 0 });
  stub.paid(organizationId, 100);
  const taken = stub.paid(organizationId, 100);
  await operator.run("credit", "grant", other.organizationId, "1000", "--id", taken.id);
  const above = stub.paid(full.organizationId, 100);
  stub.paid(organizationId, 100);
  const { exitCode, stdout, stderr } = await operator.try("credit", "topups-check");
  expect(exitCode).toBe(1);
  expect(readLine(stdout)).toMatchObject({ sessions: 4, credited: 2, creditedMils: 2_000, notCredited: 2 });
  const logged = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(logged).toMatchObject([
    { grantId: above.id, outcome: "unusable", reason: expect.stringContaining("A balance is at most") },
    { grantId: taken.id, outcome: "unusable", reason: "This grant id was used for another organization." },
  ]);
});

test("without a key, or if Stripe refuses it, a sentence says so without the key", async () => {
  const without = await new Operator(service).try("credit", "topups-check");
  expect(without).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("  STRIPE_SECRET_KEY: required to check top-ups\n"),
  });
  stub.faults.push(refusal(401, "invalid_request_error", `Invalid API Key provided: ${stripeKey}`));
  const refused = await operator.try("credit", "topups-check");
  expect(refused.exitCode).toBe(1);
  expect(refused.stderr).toMatch(/^Stripe did not list its payments: .*401/);
  expect(refused.stdout + refused.stderr).not.toContain("canary");
});
