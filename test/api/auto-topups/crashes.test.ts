import { afterEach, expect, test } from "vitest";
import { endPauses, paymentsOf, payerWithCard, topupsOf } from "../../harness/fixtures/auto-topup-payer.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { hang } from "../../harness/stubs/stripe-stub.ts";

/** An API that is killed between any two steps of a payment: the next one charges once, and credits once. */

const { stub, service } = await startStripeService({ apis: 0, workers: 0 });
afterEach(async () => {
  stub.away = undefined;
  for (const api of service.apis.splice(0)) await api.destroy();
});

/** The environment of an API that kills itself when it is about to send this to Postgres or Redis. */
function dyingBefore(sent: string): Record<string, string> {
  const preload = new URL("../../harness/processes/die-before.ts", import.meta.url);
  preload.searchParams.set("before", sent);
  return { NODE_OPTIONS: `--import=${preload.href}` };
}

/** A payer with automatic top-ups on, of which no API knows yet. */
async function readyPayer() {
  await service.startApi();
  // Above the threshold.
  const payer = await payerWithCard(service, stub, { creditMils: 9_000 });
  await payer.switchOn();
  for (const api of service.apis.splice(0)) await api.destroy();
  await service.database.query("update auto_topups set threshold_mils = 10000 where organization_id = $1", [
    payer.organizationId,
  ]);
  return payer;
}

type Payer = Awaited<ReturnType<typeof readyPayer>>;

async function isPaidOnceBy(payer: Payer): Promise<void> {
  const { organizationId } = payer;
  await service.startApi();
  await service.until(async () => {
    await endPauses(service, organizationId);
    return (await topupsOf(service, organizationId)).length === 1;
  });
  expect(payer.chargedAtStripe()).toEqual([10]);
  expect(await topupsOf(service, organizationId)).toEqual([10_000]);
  expect(await paymentsOf(service, organizationId)).toMatchObject([{ state: "paid" }]);
}

test.each([
  { step: "the row is written", sent: "begin_auto_topup", charged: 0, rows: 0 },
  { step: "the credit is added", sent: "from topup(", charged: 1, rows: 1 },
  { step: "the payment is marked as paid", sent: "pay_auto_topup", charged: 1, rows: 1 },
  { step: "its entry in the audit trail is written", sent: "insert into audit_entries", charged: 1, rows: 1 },
  { step: "the credit is committed", sent: '"commit"', charged: 1, rows: 1 },
])("an API that dies before $step leads to one charge and one credit", async ({ sent, charged, rows }) => {
  const payer = await readyPayer();
  // It may die before it listens.
  await service.startApi(dyingBefore(sent)).catch(() => undefined);
  for (const api of service.apis.splice(0)) await service.until(async () => api.hasEnded);
  expect(payer.chargedAtStripe()).toHaveLength(charged);
  expect(await paymentsOf(service, payer.organizationId)).toHaveLength(rows);
  expect(await topupsOf(service, payer.organizationId)).toEqual([]);
  await isPaidOnceBy(payer);
});

test.each([
  { step: "before Stripe has made the payment", isMade: false },
  { step: "after Stripe has made it and before the reply", isMade: true },
])("an API that dies $step leads to one charge and one credit", async ({ isMade }) => {
  const payer = await readyPayer();
  stub.calls.length = 0;
  if (isMade) stub.chargeFaults.push(hang);
  else stub.away = hang;
  const api = await service.startApi();
  await service.until(async () => stub.calls.some(({ path }) => path === "/v1/payment_intents"));
  await api.destroy();
  service.apis.length = 0;
  stub.away = undefined;
  expect(payer.chargedAtStripe()).toHaveLength(isMade ? 1 : 0);
  await isPaidOnceBy(payer);
});

test("an API that is stopped waits for the payment that it has begun", async () => {
  const payer = await readyPayer();
  let reply: (() => void) | undefined;
  stub.away = (response) => {
    // Stripe takes its time, and then refuses: whatever it says, the API reads it before it ends.
    reply = () => response.writeHead(500).end("{}");
  };
  const api = await service.startApi();
  await service.until(async () => reply !== undefined);
  const stopped = api.stop();
  await api.line("stopping");
  reply?.();
  expect(await stopped).toBe(0);
  service.apis.length = 0;
  stub.away = undefined;
  const recorded = "Stripe did not say whether a card was charged";
  await service.until(async () => api.lines.some(({ msg }) => msg === recorded));
  await isPaidOnceBy(payer);
});
