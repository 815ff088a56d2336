import { afterAll, expect, test } from "vitest";
import { beginErasure } from "../../../commands/erasure/erase-organization.ts";
import { inTransaction, type Querying } from "../../../shared/database/transaction.ts";
import { recordEvent } from "../../../shared/webhooks/webhook-events.ts";
import { setWebhook } from "../../../shared/webhooks/webhooks.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { operator } from "../../harness/fixtures/operator.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";

/** An erasure beside the transactions that change the same rows. */

const { database, url } = await openFreshDatabase(afterAll);

/** A suspended organization with a threshold, a webhook, an event and automatic top-ups. */
async function customer(): Promise<string> {
  const organizationId = await createPayer(database, 100);
  await inTransaction(database, async (transaction) => {
    await setWebhook(transaction, { actor: operator, organizationId }, "https://hooks.example/");
    await recordEvent(transaction, organizationId, { type: "webhook.test", data: {} });
  });
  await asOwner(url, async (owner) => {
    for (const statement of [
      "update organizations set suspended_at = now() where id = $1",
      "insert into low_balance_thresholds (organization_id, threshold_mils) values ($1, 1000)",
      "insert into auto_topups (organization_id, customer_id) values ($1, 'cus_1')",
    ])
      await owner.query(statement, [organizationId]);
  });
  return organizationId;
}

const isWaiting = async () => {
  const { rows } = await asOwner(url, (owner) =>
    owner.query("select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"),
  );
  return rows.length > 0;
};

const recordOf = (type: "balance.low" | "auto_topup.paused") => (transaction: Querying, organizationId: string) =>
  recordEvent(transaction, organizationId, { type, data: {} });

test.each([
  {
    title: "a low balance is recorded",
    first: "update low_balance_thresholds set below_since = now() where organization_id = $1",
    next: recordOf("balance.low"),
  },
  {
    title: "automatic top-ups are paused",
    first: "select from auto_topups where organization_id = $1 for update",
    next: recordOf("auto_topup.paused"),
  },
  {
    title: "the webhook is removed",
    first: "delete from webhooks where organization_id = $1",
    next: (transaction: Querying, organizationId: string) =>
      transaction.query("update webhook_events set next_attempt_at = null where organization_id = $1", [
        organizationId,
      ]),
  },
])("an erasure waits for a transaction in which $title, and ends neither", async ({ first, next }) => {
  const organizationId = await customer();
  let erasure: ReturnType<typeof beginErasure> | undefined;
  await inTransaction(database, async (transaction) => {
    await transaction.query(first, [organizationId]);
    erasure = beginErasure(database, operator, organizationId);
    await eventually(isWaiting);
    await next(transaction, organizationId);
  });
  expect(await erasure).toEqual({ balanceMils: 100 });
  const { rows } = await database.query("select from webhook_events where organization_id = $1", [organizationId]);
  expect(rows).toEqual([]);
});
