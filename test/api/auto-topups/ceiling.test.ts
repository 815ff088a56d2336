import { afterAll, expect, test } from "vitest";
import { beginErasure } from "../../../commands/erasure/erase-organization.ts";
import { exportOrganization } from "../../../commands/erasure/export-organization.ts";
import { beginPayment, claimPayments, findLowBalances } from "../../../api/auto-topups/payments.ts";
import { saveCard, switchOn } from "../../../api/auto-topups/audited-changes.ts";
import { keepCustomer } from "../../../api/auto-topups/auto-topup.ts";
import { inTransaction } from "../../../shared/database/transaction.ts";
import { newId } from "../../../shared/ids.ts";
import { topUp } from "../../../api/topups/credit-payment.ts";
import { endPauses, paymentsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { Service } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";

/** What Postgres decides about automatic top-ups, however many processes ask it at once. No process runs here. */

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });

const actor = { kind: "stripe", eventId: "evt_test" } as const;
const usual = { thresholdMils: 1_000_000, amountMils: 10_000, ceilingMils: 50_000 };

async function payer(terms = usual) {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const customerId = `cus_${newId("org").slice(4)}`;
  await keepCustomer(service.database, organizationId, customerId);
  const card = { paymentMethodId: `pm_${newId("org").slice(4)}`, brand: "visa", last4: "4242", expires: "4/2030" };
  await inTransaction(service.database, async (transaction) => {
    await saveCard(
      transaction,
      { actor, organizationId, requestId: "req" },
      { customerId, card, enteredAt: new Date() },
    );
    await switchOn(transaction, { actor, organizationId }, terms);
  });
  return { organizationId, customerId, card };
}

/** Credits a payment as the process does that Stripe answered. */
async function pay(organizationId: string, paymentId: string, mils = 10_000, at = new Date()): Promise<void> {
  const intent = `pi_${paymentId.slice(4)}`;
  await inTransaction(service.database, async (transaction) => {
    await topUp(transaction, { organizationId, grantId: intent, mils });
    await transaction.query("select pay_auto_topup($1, $2, $3, $4, $5)", [organizationId, paymentId, intent, mils, at]);
  });
}

test("of many processes that begin a payment at once one does, and a month never has more than the ceiling", async () => {
  const { organizationId } = await payer();
  const begun: string[] = [];
  for (let round = 0; round < 8; round += 1) {
    const made = await Promise.all(Array.from({ length: 10 }, () => beginPayment(service.database, organizationId)));
    const payments = made.filter((payment) => payment !== undefined);
    expect(payments).toHaveLength(round < 5 ? 1 : 0);
    for (const { paymentId } of payments) {
      begun.push(paymentId);
      await pay(organizationId, paymentId);
      await endPauses(service, organizationId);
    }
  }
  expect(begun).toHaveLength(5);
});

test("after a payment the next one begins no sooner than a minute later, however low the balance is", async () => {
  const { organizationId } = await payer();
  await pay(organizationId, (await beginPayment(service.database, organizationId))?.paymentId ?? "");
  const pass = (seconds: number) =>
    asOwner(service.databaseUrl, (owner) =>
      owner.query(
        "update auto_topups set next_payment_at = next_payment_at - make_interval(secs => $2) where organization_id = $1",
        [organizationId, seconds],
      ),
    );
  const due = () => findLowBalances(service.database, { after: "", limit: 100 });
  // The test may take a part of the minute itself.
  await pass(30);
  expect(await beginPayment(service.database, organizationId)).toBeUndefined();
  expect((await due()).organizationIds).not.toContain(organizationId);
  await pass(30);
  expect((await due()).organizationIds).toContain(organizationId);
  expect(await beginPayment(service.database, organizationId)).toMatchObject({ mils: 10_000 });
});

test("a new month in UTC has its room again, whatever the time zone of the session", async () => {
  const { organizationId } = await payer({ ...usual, ceilingMils: 10_000 });
  const first = await beginPayment(service.database, organizationId);
  await pay(organizationId, first?.paymentId ?? "");
  await endPauses(service, organizationId);
  expect(await beginPayment(service.database, organizationId)).toBeUndefined();
  for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago", "UTC"]) {
    const next = await asOwner(service.databaseUrl, async (owner) => {
      await owner.query(`set time zone '${zone}'`);
      await owner.query("update auto_topups set next_payment_at = now() where organization_id = $1", [organizationId]);
      await owner.query("select * from begin_auto_topup($1, $2, 100)", [organizationId, newId("pay")]);
      const { rows } = await owner.query("select next_payment_at from auto_topups where organization_id = $1", [
        organizationId,
      ]);
      return rows[0].next_payment_at;
    });
    const now = new Date();
    expect(next).toEqual(new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1)));
  }
  await asOwner(service.databaseUrl, async (owner) => {
    const values = [organizationId];
    await owner.query(
      `update auto_topup_payments set asked_at = date_trunc('month', now() at time zone 'UTC') at time zone 'UTC' - interval '1 ms'
       where organization_id = $1`,
      values,
    );
    await owner.query("update auto_topups set next_payment_at = now() where organization_id = $1", values);
  });
  expect(await beginPayment(service.database, organizationId)).toMatchObject({ mils: 10_000 });
});

test("an open payment that is due goes to one of many processes", async () => {
  const { organizationId } = await payer();
  const begun = await beginPayment(service.database, organizationId);
  await endPauses(service, organizationId);
  const claims = await Promise.all(Array.from({ length: 10 }, () => claimPayments(service.database, 10)));
  expect(claims.flat()).toMatchObject([{ paymentId: begun?.paymentId, attempts: 2, mayCharge: true }]);
});

const choose = (organizationId: string, terms: Partial<typeof usual>) =>
  inTransaction(service.database, (transaction) =>
    switchOn(transaction, { actor, organizationId }, { ...usual, ...terms }),
  );

test.each([
  {
    meanwhile: "is suspended",
    change: (id: string) => service.database.query("update organizations set suspended_at = now() where id = $1", [id]),
  },
  { meanwhile: "lowers the amount", change: (id: string) => choose(id, { amountMils: 5_000 }) },
  { meanwhile: "lowers the monthly limit", change: (id: string) => choose(id, { ceilingMils: 15_000 }) },
  { meanwhile: "lowers the threshold", change: (id: string) => choose(id, { thresholdMils: 10_000 }) },
  {
    meanwhile: "adds credit",
    change: (organizationId: string) =>
      topUp(service.database, { organizationId, grantId: newId("grant"), mils: usual.thresholdMils }),
  },
])("an open payment is not charged any more if its payer $meanwhile", async ({ change }) => {
  const { organizationId } = await payer();
  await pay(organizationId, (await beginPayment(service.database, organizationId))?.paymentId ?? "");
  await endPauses(service, organizationId);
  const begun = await beginPayment(service.database, organizationId);
  const claim = async () => {
    await endPauses(service, organizationId);
    return (await claimPayments(service.database, 10)).filter(({ paymentId }) => paymentId === begun?.paymentId);
  };
  expect(await claim()).toMatchObject([{ mayCharge: true }]);
  await change(organizationId);
  expect(await claim()).toMatchObject([{ mayCharge: false }]);
});

test("a payment that only Stripe knows is credited, and its month counts it", async () => {
  const { organizationId } = await payer({ ...usual, ceilingMils: 15_000 });
  const paymentId = newId("pay");
  for (let count = 0; count < 2; count += 1) await pay(organizationId, paymentId);
  expect(await paymentsOf(service, organizationId)).toMatchObject([{ id: paymentId, state: "paid", mils: 10_000 }]);
  await endPauses(service, organizationId);
  expect(await beginPayment(service.database, organizationId)).toBeUndefined();
});

test("the export has settings and payments, and the erasure deletes them and has Stripe delete the customer", async () => {
  const { organizationId, customerId, card } = await payer();
  const begun = await beginPayment(service.database, organizationId);
  const lines = [];
  for await (const line of exportOrganization(service, organizationId)) lines.push(line);
  expect(lines.filter(({ kind }) => kind.startsWith("auto_topup"))).toMatchObject([
    { kind: "auto_topup", customerId, card, terms: usual, isOn: true },
    { kind: "auto_topup_payment", paymentId: begun?.paymentId, state: "open", paymentMethodId: card.paymentMethodId },
  ]);

  await service.database.query("update organizations set suspended_at = now() where id = $1", [organizationId]);
  await service.database.query("update tokens set revoked_at = now() where organization_id = $1", [organizationId]);
  const operator = { kind: "operator", name: "ada", host: "here" } as const;
  for (let count = 0; count < 2; count += 1)
    expect(await beginErasure(service.database, operator, organizationId)).toEqual({ balanceMils: 0 });
  expect(await paymentsOf(service, organizationId)).toEqual([]);
  const { rows } = await service.database.query("select from auto_topups where organization_id = $1", [organizationId]);
  expect(rows).toEqual([]);
  const deletions = await service.database.query("select stripe_id from stripe_deletions");
  expect(deletions.rows).toEqual([{ stripe_id: customerId }]);
});

test.each([
  "update auto_topup_payments set mils = 1",
  "delete from auto_topup_payments",
  "insert into auto_topup_payments (id, organization_id, mils) values ('x', 'x', 1)",
  "delete from auto_topups",
])("a process may not run: %s", async (statement) => {
  await expect(service.database.query(statement)).rejects.toThrow(/permission denied/);
});
