import { afterAll, expect, test } from "vitest";
import { readAudit } from "../../../shared/audit/audit.ts";
import { countOutcomes, acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { endPauses, payerWithCard, payerWithWebhook, topupsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { Service } from "../../harness/processes/service.ts";
import { eventOf, StripeStub } from "../../harness/stubs/stripe-stub.ts";

/** A payer who disputes a payment at the bank is not charged again. */

const stub = await StripeStub.start();
const service = await Service.start({ workers: 1, environment: { ...stub.environment, WEBHOOK_TARGETS: "any" } });
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await service.stop();
  await stub.close();
});

/** The payer's first payment, and Stripe's event of its dispute. */
async function disputedPayment({ organizationId, customer }: { organizationId: string; customer: string }) {
  await service.until(async () => (await topupsOf(service, organizationId)).length === 1);
  const intent = stub.cards.paid.find((made) => made.customer === customer);
  return eventOf({ id: "dp_1", charge: intent?.latest_charge, payment_intent: intent?.id }, "charge.dispute.created");
}

const pausesOf = async (organizationId: string) =>
  (await readAudit(service.database, { organizationId, limit: 100 })).filter(
    ({ action }) => action === "auto_topup.paused",
  );

test("a dispute of an automatic top-up pauses them, with an entry in the audit trail, an event and a sentence on the page", async () => {
  const payer = await payerWithWebhook(service, stub);
  const { organizationId } = payer;
  await payer.switchOn({ threshold: "90" });
  const dispute = await disputedPayment(payer);
  const counts = await countOutcomes(service, async () => {
    expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
  });
  expect(counts).toEqual({ disputed: 1 });
  expect(await payer.event()).toMatchObject({
    type: "auto_topup.paused",
    data: { organizationId, reason: "disputed", amountMils: 10_000 },
  });
  const page = await payer.page();
  expect(page).toContain("Paused since");
  expect(page).toContain("A charge to your card was disputed at the bank.");
  expect(await pausesOf(organizationId)).toMatchObject([
    { actorKind: "stripe", actor: dispute.id, subject: expect.stringMatching(/^pay_/), after: { reason: "disputed" } },
  ]);
  const logged = await service.apis[0]?.line("a payment was disputed at Stripe; its credit was not removed");
  expect(logged).toMatchObject({ organizationId, isPaused: true, charge: expect.stringMatching(/^ch_/) });

  // Another payer's payment comes and goes meanwhile.
  await endPauses(service, organizationId);
  const other = await payerWithCard(service, stub);
  await other.switchOn();
  await service.until(async () => (await topupsOf(service, other.organizationId)).length === 1);
  expect(payer.chargedAtStripe()).toEqual([10]);
  await payer.close();
});

test("a repeated event of a dispute pauses automatic top-ups that the payer has switched on again no second time", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  await payer.switchOn();
  const dispute = await disputedPayment(payer);
  for (let count = 0; count < 2; count += 1) expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
  await payer.switchOn();
  expect(await sendEvent(service, { ...dispute, id: "evt_again" })).toMatchObject(acknowledged);
  expect(await payer.page()).not.toContain("Paused since");
  expect(await pausesOf(organizationId)).toHaveLength(1);
});

test("a dispute pauses nothing that is off", async () => {
  const payer = await payerWithCard(service, stub);
  await payer.switchOn();
  const dispute = await disputedPayment(payer);
  await payer.send("/off");
  expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
  expect(await pausesOf(payer.organizationId)).toEqual([]);
});
