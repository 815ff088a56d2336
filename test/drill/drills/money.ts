import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { newId } from "../../../shared/ids.ts";
import { sendEvent } from "../../harness/clients/topups.ts";
import { savedCard } from "../../harness/fixtures/saved-card.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { tenOrganic } from "../../harness/stubs/serper-stub.ts";
import { eventOf, type Fault, disconnect, refusal, signatureOf } from "../../harness/stubs/stripe-stub.ts";
import type { Drill } from "../drill.ts";
import type { DrillStack } from "../drill-stack.ts";

// More than the alert needs.
const unconfirmed = 15;
const mended = async () => undefined;

/** Changes the balance of an organization without an entry in the ledger. */
const changeBalance = ({ service }: DrillStack, organizationId: string, mils: number) =>
  asOwner(service.databaseUrl, "update organizations set balance_mils = balance_mils + $2 where id = $1", [
    organizationId,
    mils,
  ]);

/** Waits until this many charges wait for their confirmation, or were reversed because it did not come. */
async function untilCounted({ service }: DrillStack, what: "waiting" | "reversed"): Promise<void> {
  const from = {
    waiting: "undelivered",
    reversed: "ledger_entries where kind = 'reversal' and reason = 'undelivered'",
  };
  await service.until(async () => {
    const { rows } = await service.database.query(`select count(*)::int as count from ${from[what]}`);
    return rows[0].count >= unconfirmed;
  });
}

/** Makes the saved cards of payers due while Stripe fails each call. @returns a function that repairs Stripe. */
async function chargeCards(
  { service, stripe }: DrillStack,
  payers: number,
  fault: Fault,
): Promise<() => Promise<void>> {
  stripe.away = fault;
  for (let n = 1; n <= payers; n += 1) {
    const { organizationId } = await service.organization();
    await savedCard(service.database, organizationId, 1_000_000_000);
  }
  return async () => void (stripe.away = undefined);
}

export const moneyDrills: readonly Drill[] = [
  {
    name: "ledger-drift",
    outage: "one balance is a mil too high",
    expects: ["LedgerDrift"],
    begin: async (stack) => {
      // It does not search, because the next ledger entry would continue from the wrong balance.
      const { organizationId } = await stack.service.organization();
      await changeBalance(stack, organizationId, 1);
      return async () => void (await changeBalance(stack, organizationId, -1));
    },
  },
  {
    name: "ledger-gap",
    outage: "Redis has a newer balance than Postgres, as after a failover",
    expects: ["LedgerGap"],
    begin: async ({ service }) => {
      const { organizationId } = await service.organization();
      await service.redis.hset(keysOf(organizationId).balance, { balance: 0, version: 99 });
      return async () => void (await service.database.query("select close_ledger_gap(id, 'drill') from ledger_gaps"));
    },
  },
  {
    name: "no-maintenance",
    outage: "no worker leads, so nothing compares balances with the ledger",
    expects: ["LedgerDriftUnknown"],
    withinMs: 900_000,
    begin: async ({ service }) => {
      await service.redis.set("maintenance", "no worker");
      return async () => void (await service.redis.del("maintenance"));
    },
  },
  {
    name: "payment-without-account",
    outage: "a payment arrives for an organization that does not exist",
    expects: ["TopupNotCredited"],
    begin: async ({ service, stripe }) => {
      await sendEvent(service, eventOf(stripe.paid(newId("org"), 500)));
      return mended;
    },
  },
  {
    name: "events-refused",
    outage: "the secret of Stripe's events is wrong",
    expects: ["StripeEventsRefused"],
    begin: async ({ service, stripe }) => {
      const event = eventOf(stripe.paid(newId("org"), 500));
      const signature = signatureOf(JSON.stringify(event), { secret: "whsec_another" });
      for (let times = 0; times < 3; times += 1) await sendEvent(service, event, { signature });
      return mended;
    },
  },
  {
    name: "payment-disputed",
    outage: "a payment is disputed at the bank",
    expects: ["TopupDisputed"],
    begin: async ({ service }) => {
      const dispute = { id: "dp_1", charge: "ch_1", payment_intent: "pi_1", metadata: {} };
      await sendEvent(service, eventOf(dispute, "charge.dispute.created"));
      return mended;
    },
  },
  {
    name: "payment-refused",
    outage: "Stripe refuses an automatic top-up",
    expects: ["AutoTopupRefused"],
    begin: (stack) => chargeCards(stack, 1, refusal(400, "invalid_request_error", "This account cannot charge cards.")),
  },
  {
    name: "cards-declined",
    outage: "the cards of six payers are declined",
    expects: ["AutoTopupsDeclined"],
    begin: (stack) => chargeCards(stack, 6, refusal(402, "card_error", "Your card was declined.")),
  },
  {
    name: "stripe-away",
    outage: "Stripe does not answer, and three payers have automatic top-ups due",
    expects: ["AutoTopupsUnanswered"],
    begin: (stack) => chargeCards(stack, 3, disconnect),
  },
  {
    name: "deliveries-unconfirmed",
    outage: "APIs answer but cannot confirm it in Postgres; the charges are backdated by six minutes",
    expects: ["UndeliveredReversals"],
    begin: async (stack) => {
      const { service, provider, apisToPostgres } = stack;
      const release = provider.hold(tenOrganic);
      await service.until(async () => (await service.holdsOf(stack.organization.organizationId)).open >= unconfirmed);
      apisToPostgres.cut();
      release();
      await untilCounted(stack, "waiting");
      await service.age();
      await untilCounted(stack, "reversed");
      apisToPostgres.mend();
      return mended;
    },
  },
  {
    name: "notifications-fail",
    outage: "Alertmanager does not reach its receiver",
    expects: ["NotificationsFail"],
    withinMs: 600_000,
    begin: async ({ alertmanager }) => {
      alertmanager.failNotifications();
      return async () => alertmanager.mend();
    },
  },
];
