import { afterAll, expect, test } from "vitest";
import { grantCredit } from "../../shared/credits/ledger.ts";
import { inTransaction } from "../../shared/database/transaction.ts";
import { newId } from "../../shared/ids.ts";
import { setThreshold } from "../../shared/webhooks/low-balance.ts";
import { attemptsMax, eventsPerDayMax, recordEvent, replayEvent } from "../../shared/webhooks/webhook-events.ts";
import { removeWebhook, replaceSecret, setWebhook } from "../../shared/webhooks/webhooks.ts";
import { summed } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { answering, verified, WebhookReceiver } from "../harness/stubs/webhook-receiver.ts";
import { operator } from "../harness/fixtures/operator.ts";

/** From the search that takes the balance below its threshold to the receiver of the event. */

const service = await Service.start({
  workers: 2,
  environment: { WEBHOOK_TARGETS: "any", TOPUP_URL: "https://pay.example/" },
});
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await service.stop();
  await Promise.all(receivers.map((receiver) => receiver.close()));
});
const receivers: WebhookReceiver[] = [];

/** An organization with 100 mils of credit, whose events go to a receiver of its own. */
async function organizationWithWebhook() {
  const organization = await service.organization({ creditMils: 100 });
  const { organizationId } = organization;
  const receiver = await WebhookReceiver.start();
  receivers.push(receiver);
  const secret = await inTransaction(service.database, (transaction) =>
    setWebhook(transaction, { actor: operator, organizationId }, receiver.url),
  );
  return { organization, organizationId, receiver, secret: secret ?? "" };
}

const setBelow = (organizationId: string, mils: number | null) =>
  inTransaction(service.database, (transaction) =>
    setThreshold(transaction, { actor: operator, organizationId }, mils),
  );

const recordTest = (organizationId: string) =>
  recordEvent(service.database, organizationId, { type: "webhook.test", data: {} });

const grant = (organizationId: string, mils: number) =>
  grantCredit(service.database, { organizationId, grantId: newId("grant"), mils, reason: "test" });

async function eventsOf(organizationId: string) {
  const { rows } = await service.database.query(
    `select id, type, attempts, last_outcome, delivered_at is not null as delivered, next_attempt_at is not null as waiting
     from webhook_events where organization_id = $1 order by created_at, id`,
    [organizationId],
  );
  return rows;
}

const refusals = 'webhook_deliveries_total{outcome="refused"}';
const givenUp = "webhook_events_given_up_total";

const counted = (series: string) => summed(service.workers, series);

/** Makes the next attempt of every event due, as if its pause were over. */
const endPauses = (organizationId: string) =>
  service.database.query(
    `update webhook_events set next_attempt_at = now(), last_outcome = null
     where organization_id = $1 and next_attempt_at is not null`,
    [organizationId],
  );

test("an organization whose notice cannot be written keeps none behind it from theirs, and gets its own later", async () => {
  const made = await Promise.all([organizationWithWebhook(), organizationWithWebhook()]);
  const [locked, other] = made.toSorted((one, another) => (one.organizationId < another.organizationId ? -1 : 1));
  if (!locked || !other) throw new Error("two were made");
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("select from webhooks where organization_id = $1 for update", [locked.organizationId]);
    for (const { organizationId } of [locked, other]) await setBelow(organizationId, 500);
    await service.until(async () => other.receiver.received.length === 1);
    expect(locked.receiver.received).toHaveLength(0);
    await owner.query("commit");
  });
  await service.until(async () => locked.receiver.received.length === 1);
});

/** Side by side, because each waits for maintenance. */
test.concurrent("a search that takes the balance below the threshold makes one event, and the next one comes after credit was added", async () => {
  const { organization, organizationId, receiver, secret } = await organizationWithWebhook();
  await setBelow(organizationId, 100);
  expect((await service.search(organization.token, { keyword: "credit" })).status).toBe(200);
  await service.until(async () => (await eventsOf(organizationId)).some(({ delivered }) => delivered));
  const [first] = receiver.received;
  expect(first && verified(first, secret)).toEqual({
    type: "balance.low",
    timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
    data: {
      organizationId,
      balanceMils: 95,
      thresholdMils: 100,
      endsOn: expect.stringMatching(/^\d{4}-\d\d-\d\d$/),
      topupUrl: "https://pay.example/",
    },
  });

  // Further searches below the threshold are no news; credit arms it, and the next crossing is.
  expect((await service.search(organization.token, { keyword: "less credit" })).status).toBe(200);
  await grant(organizationId, 10);
  const { database } = service;
  const armed = "select 1 from low_balance_thresholds where organization_id = $1 and below_since is null";
  await service.until(async () => (await database.query(armed, [organizationId])).rowCount === 1);
  expect(receiver.received).toHaveLength(1);
  expect((await service.search(organization.token, { keyword: "low again" })).status).toBe(200);
  await service.until(async () => receiver.received.length === 2);
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(2);
});

test.concurrent("a threshold that is set above the balance makes an event at once; the same one, set again, does not", async () => {
  const { organizationId, receiver } = await organizationWithWebhook();
  await setBelow(organizationId, 500);
  await service.until(async () => receiver.received.length === 1);
  await setBelow(organizationId, 500);
  await setBelow(organizationId, 600);
  await service.until(async () => receiver.received.length === 2);
  const thresholds = receiver.received.map(({ body }) => JSON.parse(body).data.thresholdMils);
  expect(thresholds).toEqual([500, 600]);
});

test("an event that is refused is sent again under its id with pauses, until it is given up; a replay begins anew", async () => {
  const { organizationId, receiver, secret } = await organizationWithWebhook();
  const [refusedBefore, givenUpBefore] = [await counted(refusals), await counted(givenUp)];
  receiver.faults.push(...Array.from({ length: attemptsMax }, () => answering(500)));
  await recordTest(organizationId);
  for (let attempts = 1; attempts <= attemptsMax; attempts += 1) {
    await service.until(async () => {
      const [event] = await eventsOf(organizationId);
      return event.attempts === attempts && event.last_outcome === "refused" && receiver.received.length === attempts;
    });
    const [event] = await eventsOf(organizationId);
    expect(event).toMatchObject({ delivered: false, waiting: attempts < attemptsMax });
    await endPauses(organizationId);
  }
  const [{ id }] = await eventsOf(organizationId);
  await inTransaction(service.database, (transaction) =>
    replayEvent(transaction, { actor: operator, organizationId }, id),
  );
  await service.until(async () => (await eventsOf(organizationId))[0].delivered);
  expect(receiver.received).toHaveLength(attemptsMax + 1);
  expect(new Set(receiver.received.map((request) => request.id))).toEqual(new Set([id]));
  for (const request of receiver.received) verified(request, secret);
  const [refusedAfter, givenUpAfter] = [await counted(refusals), await counted(givenUp)];
  expect([refusedAfter - refusedBefore, givenUpAfter - givenUpBefore]).toEqual([attemptsMax, 1]);
});

test("a receiver that wants no more events (410) gets none of this event", async () => {
  const { organizationId, receiver } = await organizationWithWebhook();
  receiver.faults.push(answering(410));
  await recordTest(organizationId);
  await service.until(async () => (await eventsOf(organizationId))[0].last_outcome === "refused");
  expect(await eventsOf(organizationId)).toMatchObject([{ attempts: 1, waiting: false, delivered: false }]);
});

test("after a new secret, events are also signed with the old one for its day, however often that happens, and an ended one is deleted", async () => {
  const { organizationId, receiver, secret } = await organizationWithWebhook();
  const { database } = service;
  const replace = () =>
    inTransaction(database, (transaction) => replaceSecret(transaction, { actor: operator, organizationId }));
  const secrets = [secret, (await replace()) ?? "", (await replace()) ?? ""];
  await recordTest(organizationId);
  await service.until(async () => receiver.received.length === 1);
  for (const each of secrets) expect(receiver.received[0] && verified(receiver.received[0], each)).toBeTruthy();

  const ended = "update webhook_old_secrets set ends_at = now() where organization_id = $1 and secret = $2";
  await asOwner(service.databaseUrl, ended, [organizationId, secret]);
  await recordTest(organizationId);
  await service.until(async () => receiver.received.length === 2);
  const [, second] = receiver.received;
  for (const each of secrets.slice(1)) expect(second && verified(second, each)).toBeTruthy();
  expect(() => second && verified(second, secret)).toThrow();
  await replace();
  const old = "select secret from webhook_old_secrets where organization_id = $1 order by ends_at";
  const { rows } = await database.query(old, [organizationId]);
  expect(rows.map((row) => row.secret)).toEqual(secrets.slice(1));
});

test("a receiver that hangs delays no event of another organization, and a removed webhook gets no more", async () => {
  const slow = await organizationWithWebhook();
  const other = await organizationWithWebhook();
  slow.receiver.faults.push(() => undefined);
  for (let count = 0; count < 3; count += 1) await recordTest(slow.organizationId);
  await service.until(async () => slow.receiver.received.length > 0);
  await recordTest(other.organizationId);
  await service.until(async () => other.receiver.received.length === 1);
  await inTransaction(service.database, (transaction) =>
    removeWebhook(transaction, { actor: operator, organizationId: slow.organizationId }),
  );
  expect((await eventsOf(slow.organizationId)).filter(({ waiting }) => waiting)).toEqual([]);
});

test("an organization has a hundred events of a type a day, so that tests use up none of the others", async () => {
  const { organizationId } = await organizationWithWebhook();
  const { database } = service;
  for (let count = 0; count < eventsPerDayMax; count += 1) await recordTest(organizationId);
  expect(await recordTest(organizationId)).toBe("too_many");
  for (const type of ["balance.low", "auto_topup.paused"] as const)
    expect(await recordEvent(database, organizationId, { type, data: {} })).toHaveProperty("eventId");
  await database.query(
    "update webhook_events set created_at = now() - interval '25 hours' where organization_id = $1",
    [organizationId],
  );
  expect(await recordTest(organizationId)).toMatchObject({
    eventId: expect.stringMatching(/^evt_/),
  });
});

test("an event whose worker is killed during the delivery is sent again by another one, under the same id", async () => {
  const { organizationId, receiver } = await organizationWithWebhook();
  let answered = false;
  receiver.faults.push(() => {
    answered = true;
  });
  await recordTest(organizationId);
  await service.until(async () => answered);
  await Promise.all(service.workers.splice(0).map((worker) => worker.destroy()));
  expect(await eventsOf(organizationId)).toMatchObject([{ attempts: 1, delivered: false, waiting: true }]);
  await service.startWorker();
  // Its claim is over.
  await endPauses(organizationId);
  await service.until(async () => (await eventsOf(organizationId))[0].delivered);
  expect(receiver.received.map(({ id }) => id)).toEqual(Array.from({ length: 2 }, () => receiver.received[0]?.id));
});

test("a delivery that is cut off by the end of its worker is no failure, and the event waits", async () => {
  const { organizationId, receiver } = await organizationWithWebhook();
  receiver.faults.push(() => undefined); // It never answers.
  await setBelow(organizationId, 500);
  await service.until(async () => receiver.received.length === 1);
  await Promise.all(service.workers.map((worker) => worker.stop()));
  expect(await eventsOf(organizationId)).toMatchObject([{ attempts: 1, last_outcome: null, waiting: true }]);
});
