import type { ServerResponse } from "node:http";
import { beforeEach, expect, test } from "vitest";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { payerWithCard, payerWithWebhook } from "../../harness/fixtures/auto-topup-payer.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { disconnect, eventOf, refusal } from "../../harness/stubs/stripe-stub.ts";

/** A Stripe that is away, and lost replies: a card is never charged twice, and attempts come to an end. */

const { stub, service } = await startStripeService({ settings: { WEBHOOK_TARGETS: "any" } });
beforeEach(() => {
  stub.away = undefined;
});

const callsFor = (paymentId: string) => stub.calls.filter(({ idempotencyKey }) => idempotencyKey === paymentId).length;

/** Of an open payment that waits for its next attempt: how many it has had, and the minutes of the pause. */
async function pausesOf(organizationId: string): Promise<[number, number] | []> {
  const { rows } = await service.database.query(
    `select attempts, round(extract(epoch from next_attempt_at - now()) / 60)::integer as minutes
     from auto_topup_payments where organization_id = $1 and state = 'open' and next_attempt_at > now() + interval '105 seconds'`,
    [organizationId],
  );
  return rows[0] ? [rows[0].attempts, rows[0].minutes] : [];
}

/** Waits until Stripe has left so many attempts at the open payment without an answer. */
const untilUnanswered = (organizationId: string, attempts: number) =>
  service.until(async () => (await pausesOf(organizationId))[0] === attempts);

type Payer = Awaited<ReturnType<typeof payerWithCard>>;

async function retryUntilCredited(payer: Payer): Promise<void> {
  await payer.endPauses();
  await payer.untilCredited();
}

/** A payer who has switched on, and got no answer to the first attempt: Stripe is away, or its one reply was lost. */
async function unansweredPayer({ away = false, declined }: { away?: boolean; declined?: string } = {}): Promise<Payer> {
  const payer = await payerWithCard(service, stub);
  if (away) stub.away = disconnect;
  else stub.chargeFaults.push(disconnect);
  if (declined !== undefined) stub.cards.bank.push({ code: declined });
  await payer.switchOn();
  await untilUnanswered(payer.organizationId, 1);
  return payer;
}

test("after a lost reply the next attempt finds the payment at Stripe and credits it, without another charge", async () => {
  const payer = await unansweredPayer();
  const [{ id }] = await payer.payments();
  expect(await payer.topups()).toEqual([]);
  await retryUntilCredited(payer);
  expect([callsFor(id), payer.chargedAtStripe()]).toEqual([1, [10]]);
});

test("a decline whose reply was lost is found, too", async () => {
  const payer = await unansweredPayer({ declined: "expired_card" });
  await payer.endPauses();
  await service.until(async () => (await payer.page()).includes("Your card has expired."));
  expect(await payer.payments()).toMatchObject([{ state: "failed", failure: "expired_card" }]);
});

test.each(["expired_card", "insufficient_funds"])(
  "a decline that is found after the payer saved another card neither pauses nor delays its payments (%s)",
  async (code) => {
    const payer = await unansweredPayer({ declined: code });
    await payer.enterCard({ last4: "4444" });
    await retryUntilCredited(payer);
    expect(await payer.payments()).toMatchObject([{ failure: code }, { state: "paid" }]);
  },
);

test("a decline that is found after the payer switched off is no pause", async () => {
  const payer = await unansweredPayer({ declined: "expired_card" });
  const { organizationId } = payer;
  await payer.send("/off");
  await payer.endPauses();
  const declines = () =>
    service.apis
      .flatMap(({ lines }) => lines)
      .filter((line) => line.msg === "automatic top-up was declined" && line["organizationId"] === organizationId);
  await service.until(async () => declines().length === 1);
  expect(declines()).toMatchObject([{ reason: "expired_card", isPaused: false }]);
});

test.each([
  { title: "does not answer", away: disconnect },
  { title: "has an error", away: refusal(500, "api_error", "down") },
  { title: "is asked too often", away: refusal(429, "rate_limit_error", "slow down") },
  { title: "does not know the key", away: refusal(401, "invalid_request_error", "Invalid API Key") },
])("while Stripe $title, the payment stays open, and is made once when Stripe is back", async ({ away }) => {
  const payer = await payerWithCard(service, stub);
  const { organizationId } = payer;
  stub.away = away;
  await payer.switchOn();
  await untilUnanswered(organizationId, 1);
  await payer.endPauses();
  await untilUnanswered(organizationId, 2);
  stub.away = undefined;
  await retryUntilCredited(payer);
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(await payer.payments()).toMatchObject([{ state: "paid" }]);
});

test("after an error that Stripe repeats under its key, the payment is made under another one, once", async () => {
  const payer = await payerWithCard(service, stub);
  stub.cards.bank.push("not_asked", "not_asked");
  await payer.switchOn();
  await untilUnanswered(payer.organizationId, 1);
  await payer.endPauses();
  await untilUnanswered(payer.organizationId, 2);
  await retryUntilCredited(payer);
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(await payer.payments()).toMatchObject([{ state: "paid" }]);
});

test("a Stripe that stays away pauses automatic top-ups after seven attempts; what it knows later is believed", async () => {
  const payer = await payerWithWebhook(service, stub);
  const { organizationId } = payer;
  // The first call was made, and its reply was lost.
  stub.chargeFaults.push((response) => {
    stub.away = disconnect;
    response.destroy();
  });
  await payer.switchOn();
  await untilUnanswered(organizationId, 1);
  await payer.endPauses({ attempts: 6 });
  await untilUnanswered(organizationId, 7);
  expect(await pausesOf(organizationId)).toEqual([7, 6 * 60]);
  expect(await payer.event()).toMatchObject({ data: { reason: "payments_unavailable" } });
  expect(await payer.page()).toContain("Stripe did not answer for hours.");
  expect(payer.chargedAtStripe()).toEqual([10]);
  stub.away = undefined;
  await retryUntilCredited(payer);
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(await payer.page()).toContain("Paused since");
  await payer.close();
});

test("a payment that had all its attempts gives way to a new one, soon after the payer switches on again", async () => {
  const payer = await unansweredPayer({ away: true });
  const { organizationId } = payer;
  await payer.endPauses({ attempts: 6 });
  await untilUnanswered(organizationId, 7);
  await service.until(async () => (await payer.page()).includes("Paused since"));
  stub.away = undefined;
  await payer.switchOn();
  expect(await pausesOf(organizationId)).toEqual([7, 2]);
  await retryUntilCredited(payer);
  expect(await payer.payments()).toMatchObject([{ state: "failed", failure: "cancelled" }, { state: "paid" }]);
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(await payer.page()).not.toContain("Paused since");
});

test("a payer who switches on during the last attempt waits two minutes for the next one, and is not paused again", async () => {
  const payer = await unansweredPayer({ away: true });
  const { organizationId } = payer;
  const held = Promise.withResolvers<ServerResponse>();
  stub.away = held.resolve;
  await payer.endPauses({ attempts: 6 });
  const response = await held.promise;
  await payer.switchOn();
  stub.away = disconnect;
  response.destroy();
  // An API that stops ends the attempt first.
  for (const api of service.apis.splice(0)) expect(await api.stop()).toBe(0);
  expect(await pausesOf(organizationId)).toEqual([]);
  const { rows } = await service.database.query(
    "select attempts, paused_at from auto_topups join auto_topup_payments using (organization_id) where organization_id = $1",
    [organizationId],
  );
  expect(rows).toEqual([{ attempts: 7, paused_at: null }]);
  await service.startApi();
});

test.each(["off", "card/remove"])("a payer who switches off meanwhile (%s) is not charged", async (action) => {
  const payer = await unansweredPayer({ away: true });
  expect((await payer.send(`/${action}`)).status).toBe(303);
  stub.away = undefined;
  await payer.endPauses();
  await service.until(async () => (await payer.payments())[0].state === "failed");
  expect(await payer.payments()).toMatchObject([{ failure: "cancelled" }]);
  expect([payer.chargedAtStripe(), await payer.topups()]).toEqual([[], []]);
});

test("a payment that was made before the payer switched off is credited", async () => {
  const payer = await unansweredPayer();
  await payer.send("/card/remove");
  await retryUntilCredited(payer);
  expect(await payer.page()).toContain("Save a card");
});

test("a payment that the operator refunded before it was credited is not credited, and pauses automatic top-ups", async () => {
  const payer = await unansweredPayer();
  const intent = stub.cards.paid.find(({ customer }) => customer === payer.customer);
  stub.cards.refunded.add(intent?.id ?? "");
  await payer.endPauses();
  await service.until(async () => (await payer.payments())[0].state === "failed");
  expect(await payer.page()).toMatch(/Paused since.*The last payment was refunded before its credit was added\./s);
  const late = eventOf({ ...intent }, "payment_intent.succeeded");
  expect(await sendEvent(service, late)).toMatchObject(acknowledged);
  expect([payer.chargedAtStripe(), await payer.topups()]).toEqual([[10], []]);
});
