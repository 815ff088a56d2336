import { afterAll, expect, test } from "vitest";
import { inTransaction } from "../../../shared/database/transaction.ts";
import {
  attemptsMax,
  claimEvents,
  recordAttempt,
  recordEvent,
  replayEvent,
} from "../../../shared/webhooks/webhook-events.ts";
import { setWebhook } from "../../../shared/webhooks/webhooks.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { operator } from "../../harness/fixtures/operator.ts";

/** What remains of an event that two processes change at the same time. */

const opened = await openFreshDatabase(afterAll);

/** An organization with a webhook and an event that is due. */
async function organizationWithEvent(): Promise<string> {
  const organizationId = await createPayer(opened.database);
  await inTransaction(opened.database, async (transaction) => {
    await setWebhook(transaction, { actor: operator, organizationId }, "https://hooks.example/");
    await recordEvent(transaction, organizationId, { type: "webhook.test", data: {} });
  });
  return organizationId;
}

test("an event that is replayed during its last attempt is not given up when that fails", async () => {
  const { database, url } = opened;
  await organizationWithEvent();
  await asOwner(url, "update webhook_events set attempts = $1", [attemptsMax - 1]);
  const [claimed] = await claimEvents(database, { limit: 1, without: [] });
  if (!claimed) throw new Error("no event is due");
  await inTransaction(database, (transaction) => replayEvent(transaction, { actor: operator }, claimed.eventId));
  const recorded = await recordAttempt(database, claimed, { outcome: "refused", status: 500 });
  expect(recorded).toEqual({ givenUp: false });
  expect(await claimEvents(database, { limit: 1, without: [] })).toMatchObject([{ eventId: claimed.eventId }]);
});

test("a due event whose webhook is gone takes no other event's place", async () => {
  const { database, url } = opened;
  const gone = await organizationWithEvent();
  const organizationId = await organizationWithEvent();
  // As where the event is replayed while the webhook is removed: neither transaction sees the other's change.
  await asOwner(url, "delete from webhooks where organization_id = $1", [gone]);
  expect(await claimEvents(database, { limit: 1, without: [] })).toMatchObject([{ organizationId }]);
});

test("a claim looks at 2,000 due events, however many there are, and no organization waits for one that is being sent to", async () => {
  const { database, url } = opened;
  const [organizationId, other] = [await organizationWithEvent(), await organizationWithEvent()];
  await asOwner(url, (owner) =>
    owner.query(
      `insert into webhook_events (id, organization_id, type, body, next_attempt_at)
       select 'evt_0' || lpad(n::text, 25, '0'), $1, 'webhook.test', '{}', now() - interval '1 hour' from generate_series(1, 2000) n`,
      [organizationId],
    ),
  );
  expect(await claimEvents(database, { limit: 50, without: [] })).toMatchObject([{ organizationId }]);
  const claimed = await claimEvents(database, { limit: 50, without: [organizationId] });
  expect(claimed.map((event) => event.organizationId)).toContain(other);
});
