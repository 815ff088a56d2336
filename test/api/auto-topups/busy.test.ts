import type { ServerResponse } from "node:http";
import { afterAll, expect, test } from "vitest";
import { payerWithCard, topupsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { Service } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { disconnect, StripeStub } from "../../harness/stubs/stripe-stub.ts";

/** More payments are due than an API makes at once: each payer has a turn. */

const stub = await StripeStub.start();
const service = await Service.start({ workers: 0, environment: stub.environment });
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await service.stop();
  await stub.close();
});

// Above this threshold a payment is due again as soon as the one before has ended.
const alwaysDueMils = 1_000_000_000;
await asOwner(service.databaseUrl, (owner) =>
  owner.query(`
    create function keep_due() returns trigger language plpgsql as $$ begin new.next_payment_at := now(); return new; end $$;
    create trigger keep_due before update on auto_topups for each row when (new.threshold_mils >= ${alwaysDueMils})
      execute function keep_due()`),
);

/** More payers than an API charges at once. Their ids are lower than those of payers who come later. */
const many: string[] = [];
while (many.length < 12) many.push((await payerWithCard(service, stub)).organizationId);
/** Switches them on, so that a payment of each is always due, or off. */
const switchMany = (isOn: boolean) =>
  service.database.query(
    `update auto_topups set is_on = $2, threshold_mils = $3, amount_mils = 10000, ceiling_mils = $3
     where organization_id = any($1)`,
    [many, isOn, alwaysDueMils],
  );

test("payers whose payments are due again at once keep no other payer waiting", async () => {
  stub.chargeMs = 500;
  const other = await payerWithCard(service, stub);
  await switchMany(true);
  await service.until(async () => stub.cards.paid.length >= 2 * many.length);
  await other.switchOn();
  await service.until(async () => (await topupsOf(service, other.organizationId)).length === 1);
  expect(other.chargedAtStripe()).toEqual([10]);
  await switchMany(false);
  await service.until(async () => (await openPayments()) === 0);
  stub.chargeMs = 0;
});

async function openPayments(): Promise<number> {
  const { rows } = await service.database.query(
    "select count(*)::integer as open from auto_topup_payments where state = 'open'",
  );
  return rows[0].open;
}

test("an open payment that is due is looked at while new payments wait for Stripe", async () => {
  const payer = await payerWithCard(service, stub);
  stub.chargeFaults.push(disconnect);
  await payer.switchOn();
  const lost = "Stripe did not say whether a card was charged";
  await service.apis[0]?.line(lost);
  const waiting: ServerResponse[] = [];
  stub.chargeFaults.push(...many.map(() => (response: ServerResponse) => void waiting.push(response)));
  await switchMany(true);
  await service.until(async () => waiting.length >= 9);
  await payer.endPauses();
  await payer.untilCredited();
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(waiting.filter(({ destroyed }) => destroyed)).toEqual([]);
});
