import { expect, test } from "vitest";
import { readAudit } from "../../../shared/audit/audit.ts";
import { correctCredit } from "../../../shared/credits/ledger.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { countTopups, payerWithCard, paymentsOf, topupsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { eventOf } from "../../harness/stubs/stripe-stub.ts";

/** From a balance below the threshold to the credit that a saved card paid. */

const { stub, service } = await startStripeService();

test("a search that takes the balance below the threshold leads to one payment by the saved card, and its credit", async () => {
  const payer = await payerWithCard(service, stub, { creditMils: 5_004 });
  const { organizationId, token, tokenId, customer } = payer;
  await payer.switchOn();
  expect((await service.search(token, { keyword: "tea" })).status).toBe(200);
  await service.until(async () => (await topupsOf(service, organizationId)).length === 1);

  expect(await topupsOf(service, organizationId)).toEqual([10_000]);
  await expect.poll(async () => (await service.usage(token)).body.creditBalanceMils).toBe(14_999);
  const [payment] = await paymentsOf(service, organizationId);
  const intent = stub.cards.intents.find((made) => made.customer === customer);
  expect(payment).toMatchObject({ state: "paid", mils: 10_000, intent: intent?.id });
  const call = stub.calls.find(({ idempotencyKey }) => idempotencyKey === payment.id);
  expect(call).toMatchObject({
    method: "POST",
    path: "/v1/payment_intents",
    fields: {
      amount: "1000",
      currency: "usd",
      customer,
      payment_method: stub.cards.attachedTo(customer)[0]?.id,
      "allowed_payment_method_types[0]": "card",
      confirm: "true",
      off_session: "true",
      description: "Credit of $10.000, automatic top-up",
      "metadata[serpmill_organization]": organizationId,
      "metadata[serpmill_mils]": "10000",
      "metadata[serpmill_auto_topup]": payment.id,
    },
  });

  const entries = await readAudit(service.database, { organizationId, limit: 100 });
  expect(entries.map(({ action, actorKind, actor }) => [action, actorKind === "stripe" ? "stripe" : actor])).toEqual([
    ["session.opened", tokenId],
    ["auto_topup.card_saved", "stripe"],
    ["auto_topup.set", tokenId],
    ["credit.topped_up", "auto-topups"],
  ]);
  expect(entries.at(-1)).toMatchObject({ actorKind: "service", subject: intent?.id });
  // Nothing about the card leaves Postgres but its id.
  expect(JSON.stringify(entries)).not.toContain("4242");

  const page = await payer.page();
  expect(page).toMatch(/>Automatic top-up<[^]*\$10\.000/);
  expect(page).toContain("Used of the monthly limit: $10.000 of $100.000.");
  const receipt = await payer.person.get(`/billing/receipts/${intent?.id}`);
  expect(receipt.headers.get("location")).toBe(`https://pay.stripe.com/receipts/payment/${intent?.id}?s=ap`);
  const [paid, begun] = await Promise.all(["paid", "begun"].map((outcome) => countTopups(service, outcome)));
  expect([paid, begun]).toEqual([1, 1]);
});

test("a correction that takes the balance below the threshold charges the card, unless automatic top-ups were switched off before", async () => {
  const correct = ({ organizationId }: { organizationId: string }) =>
    correctCredit(service.database, {
      organizationId,
      grantId: `of ${organizationId}`,
      mils: -10_000,
      reason: "refunded",
    });
  const [off, on] = [
    await payerWithCard(service, stub, { creditMils: 10_000 }),
    await payerWithCard(service, stub, { creditMils: 10_000 }),
  ];
  await off.switchOn();
  await on.switchOn();
  await off.send("/off");
  await correct(off);
  await correct(on);
  await service.until(async () => (await topupsOf(service, on.organizationId)).length === 1);
  expect([off.chargedAtStripe(), on.chargedAtStripe()]).toEqual([[], [10]]);
});

test("a month has at most the ceiling, and a raised ceiling gives room at once", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  const state = async () => {
    const { rows } = await service.database.query(
      "select next_payment_at > now() as waits from auto_topups where organization_id = $1",
      [organizationId],
    );
    return rows[0];
  };
  /** Waits for the payment of so many in all, and has the next one be due. */
  const untilPaid = async (count: number) => {
    await service.until(async () => (await payer.topups()).length === count);
    await payer.endPauses();
  };
  await payer.switchOn({ threshold: "90", ceiling: "25" });
  for (const count of [1, 2]) await untilPaid(count);
  await service.until(async () => (await state()).waits);
  expect(await payer.topups()).toEqual([10_000, 10_000]);
  expect(await payer.page()).toContain("would exceed your monthly limit.");
  await payer.endPauses();
  await service.until(async () => (await state()).waits);
  await payer.switchOn({ threshold: "90", ceiling: "30" });
  await untilPaid(3);
  await service.until(async () => (await state()).waits);
  expect(payer.chargedAtStripe()).toEqual([10, 10, 10]);
});

test("Stripe's event of a payment that was credited adds nothing, however often it comes", async () => {
  const payer = await payerWithCard(service, stub);
  await payer.switchOn();
  await payer.untilCredited();
  const intent = stub.cards.intents.find(({ customer }) => customer === payer.customer);
  const event = eventOf({ ...intent }, "payment_intent.succeeded");
  for (let count = 0; count < 3; count += 1) expect(await sendEvent(service, event)).toMatchObject(acknowledged);
  expect(await payer.topups()).toEqual([10_000]);
});

test("while the bank has not decided, the payment stays open and the page says so; Stripe's event credits it, and the next look ends there", async () => {
  const payer = await payerWithCard(service, stub);
  stub.cards.bank.push("processing");
  await payer.switchOn();
  await service.until(async () => (await countTopups(service, "unanswered")) > 0);
  const intent = stub.cards.intents.find(({ customer }) => customer === payer.customer);
  if (!intent) throw new Error("no payment");
  expect(await payer.topups()).toEqual([]);
  const unconfirmed = "Stripe has not confirmed the payment of $10.000 on";
  expect(await payer.page()).toContain(unconfirmed);
  const event = eventOf({ ...stub.cards.settle(intent) }, "payment_intent.succeeded");
  expect(await sendEvent(service, event)).toMatchObject(acknowledged);
  expect(await payer.payments()).toMatchObject([{ state: "paid", intent: intent.id }]);
  expect(await payer.page()).not.toContain(unconfirmed);
  await payer.endPauses();
  expect(await payer.topups()).toEqual([10_000]);
});

test("the payment of a Checkout Session is credited with its session, and not again with its own event", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const { metadata } = stub.paid(organizationId, 1_000);
  const intent = { id: "pi_1", object: "payment_intent", status: "succeeded", amount_received: 1_000, metadata };
  expect(await sendEvent(service, eventOf(intent, "payment_intent.succeeded"))).toMatchObject(acknowledged);
  expect(await topupsOf(service, organizationId)).toEqual([]);
});
