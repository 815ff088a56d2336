import { expect, test } from "vitest";
import { readAudit } from "../../../shared/audit/audit.ts";
import { newId } from "../../../shared/ids.ts";
import { countTopups, payerWithCard, payerWithWebhook, paymentsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { acknowledged, countOutcomes, sendEvent } from "../../harness/clients/topups.ts";
import { eventOf, refusal } from "../../harness/stubs/stripe-stub.ts";

/** Payments that are declined or disputed: attempts come to an end, and the payer learns why. */

const { stub, service } = await startStripeService({ settings: { WEBHOOK_TARGETS: "any" } });

/** Waits until so many payments of an organization have ended without success. */
const untilFailed = (organizationId: string, count: number) =>
  service.until(
    async () => (await paymentsOf(service, organizationId)).filter(({ state }) => state === "failed").length === count,
  );

/** Hours until the next payment may begin. */
async function hoursToNext(organizationId: string): Promise<number> {
  const { rows } = await service.database.query(
    "select round(extract(epoch from next_payment_at - now()) / 3600)::integer as hours from auto_topups where organization_id = $1",
    [organizationId],
  );
  return rows[0].hours;
}

test("a declined card is tried four times with growing pauses, and the page says why; then the page and the webhook say that it is paused", async () => {
  const payer = await payerWithWebhook(service, stub);
  const { organizationId } = payer;
  const declined = { code: "card_declined", decline_code: "insufficient_funds" };
  stub.cards.bank.push(declined, declined, declined, declined);
  await payer.switchOn();
  const hours = [];
  for (let count = 1; count <= 3; count += 1) {
    await untilFailed(organizationId, count);
    hours.push(await hoursToNext(organizationId));
    const waiting = await payer.page();
    expect(waiting).not.toContain("Paused");
    expect(waiting).toMatch(/The payment of \$10\.000 on .* failed, and nothing was charged\./);
    expect(waiting).toContain("Your card has insufficient funds.");
    await payer.endPauses();
  }
  await untilFailed(organizationId, 4);
  expect(hours).toEqual([1, 6, 24]);
  expect(await payer.event()).toEqual({
    type: "auto_topup.paused",
    timestamp: expect.any(String),
    data: {
      organizationId,
      reason: "insufficient_funds",
      amountMils: 10_000,
      topupUrl: "https://serp.example/billing",
    },
  });
  const page = await payer.page();
  expect(page).toContain("Paused since");
  expect(page).not.toContain("try the card again");
  expect(page).toContain("Your card has insufficient funds.");

  // However long it stays paused, nothing more is tried: another payer's payment comes and goes meanwhile.
  await payer.endPauses();
  const other = await payerWithCard(service, stub);
  await other.switchOn();
  await other.untilCredited();
  expect(await payer.payments()).toHaveLength(4);

  const entries = await readAudit(service.database, { organizationId, limit: 100 });
  const failed = entries.filter(({ actorKind }) => actorKind === "service");
  expect(failed.map(({ action, after }) => [action, after?.["reason"]])).toEqual([
    ...Array.from({ length: 4 }, () => ["auto_topup.failed", "insufficient_funds"]),
    ["auto_topup.paused", "insufficient_funds"],
  ]);

  // Another card ends the pause.
  await payer.enterCard({ brand: "mastercard", last4: "4444" });
  await payer.untilCredited();
  expect(payer.chargedAtStripe()).toEqual([10]);
  await payer.close();
});

test("an event of a payment that was credited before ends no pause after declined cards", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  await payer.switchOn();
  await payer.untilCredited();
  const declined = { code: "card_declined", decline_code: "insufficient_funds" };
  stub.cards.bank.push(declined, declined);
  await payer.switchOn({ threshold: "50" });
  await untilFailed(organizationId, 1);
  await payer.endPauses();
  await untilFailed(organizationId, 2);
  const intent = stub.cards.paid.find(({ customer }) => customer === payer.customer);
  expect(await sendEvent(service, eventOf({ ...intent }, "payment_intent.succeeded"))).toMatchObject(acknowledged);
  expect(await hoursToNext(organizationId)).toBe(6);
});

test.each([
  { code: "expired_card", says: "Your card has expired." },
  { code: "card_declined", decline_code: "stolen_card", says: "The bank declined your card." },
])("a card that is never accepted again ($code, $decline_code) is tried once", async ({ says, ...decline }) => {
  const payer = await payerWithCard(service, stub);
  stub.cards.bank.push(decline);
  await payer.switchOn();
  await service.until(async () => (await payer.page()).includes("Paused since"));
  expect(await payer.page()).toContain(says);
  expect(await payer.payments()).toMatchObject([{ state: "failed" }]);
});

test("a bank that wants the payer to confirm is asked again later, and the page says what helps", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  const decline = { code: "authentication_required", decline_code: "authentication_required" };
  stub.cards.bank.push(decline);
  await payer.switchOn();
  await untilFailed(organizationId, 1);
  expect(await hoursToNext(organizationId)).toBe(1);
  expect(await payer.page()).toContain("cannot charge this card automatically");
  // What failed leaves its room below the ceiling.
  await payer.switchOn({ ceiling: "10" });
  await payer.untilCredited();
});

test("a payer who switches on again and again has the card declined ten times a day at most", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  const decline = { code: "card_declined", decline_code: "generic_decline" };
  stub.cards.bank.push(decline);
  await asOwner(service.databaseUrl, (owner) =>
    owner.query(
      `insert into auto_topup_payments (id, organization_id, mils, state, failure, ended_at)
       select id, $1, 10000, 'failed', 'card_declined', now() from unnest($2::text[]) id`,
      [organizationId, Array.from({ length: 9 }, () => newId("pay"))],
    ),
  );
  await payer.switchOn();
  await untilFailed(organizationId, 10);
  await payer.switchOn({ threshold: "20" });
  await service.until(async () => (await hoursToNext(organizationId)) === 1);
  expect(await payer.payments()).toHaveLength(10);
  expect(stub.cards.bank).toEqual([]);
});

test("a card that Stripe does not have any more pauses automatic top-ups", async () => {
  const payer = await payerWithCard(service, stub);
  for (const card of stub.cards.attachedTo(payer.customer)) card.customer = null;
  await payer.switchOn();
  await service.until(async () => (await payer.page()).includes("Stripe no longer has your card."));
  expect(payer.chargedAtStripe()).toEqual([]);
});

test("a request that Stripe refuses pauses automatic top-ups at once, and counts as refused and not as declined", async () => {
  const payer = await payerWithCard(service, stub);
  const declined = await countTopups(service, "declined");
  stub.chargeFaults.push(refusal(400, "invalid_request_error", "This account cannot charge cards."));
  await payer.switchOn();
  await service.until(async () => (await payer.page()).includes("Paused since"));
  expect(await payer.payments()).toMatchObject([{ state: "failed", failure: "refused" }]);
  await service.until(async () => (await countTopups(service, "refused")) === 1);
  expect(await countTopups(service, "declined")).toBe(declined);
});

/** The payer's first payment, and Stripe's event of its dispute. */
async function disputedPayment({ customer, untilCredited }: Awaited<ReturnType<typeof payerWithCard>>) {
  await untilCredited();
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
  await payer.endPauses();
  const other = await payerWithCard(service, stub);
  await other.switchOn();
  await other.untilCredited();
  expect(payer.chargedAtStripe()).toEqual([10]);
  await payer.close();
});

test("a repeated event of a dispute pauses automatic top-ups that the payer has switched on again no second time", async () => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  await payer.switchOn();
  const dispute = await disputedPayment(payer);
  // The first event comes before the payment's row names its PaymentIntent, so Stripe is asked whose it is.
  const nameIntent = (sql: string) =>
    asOwner(service.databaseUrl, (owner) =>
      owner.query(`update auto_topup_payments set payment_intent_id = ${sql} where organization_id = $1`, [
        organizationId,
      ]),
    );
  await nameIntent("'not_' || payment_intent_id");
  expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
  await nameIntent("substr(payment_intent_id, 5)");
  expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
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

test("a dispute of a payment that a person made pauses automatic top-ups too, once Stripe says whose it is", async () => {
  const payer = await payerWithWebhook(service, stub);
  const { organizationId } = payer;
  await payer.switchOn({ threshold: "0.5" });
  const intent = stub.cards.keepPaid(2_000, { serpmill_organization: organizationId, serpmill_mils: "20000" });
  const dispute = eventOf({ id: "dp_2", charge: "ch_2", payment_intent: intent.id }, "charge.dispute.created");
  stub.away = refusal(500, "api_error", "Down.");
  const counts = await countOutcomes(service, async () => {
    expect(await sendEvent(service, dispute)).toMatchObject({ status: 503 });
  });
  stub.away = undefined;
  expect(counts).toEqual({ disputed: 1 });
  expect(await pausesOf(organizationId)).toEqual([]);

  for (let count = 0; count < 2; count += 1) expect(await sendEvent(service, dispute)).toMatchObject(acknowledged);
  expect(await payer.event()).toMatchObject({
    type: "auto_topup.paused",
    data: { organizationId, reason: "disputed", amountMils: 20_000 },
  });
  expect(await payer.page()).toContain("Paused since");
  expect(await pausesOf(organizationId)).toMatchObject([{ subject: intent.id, after: { reason: "disputed" } }]);
  await payer.close();
});
