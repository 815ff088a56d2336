import { afterAll, beforeAll, expect, test } from "vitest";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { everythingInPostgres, everythingInRedis } from "../../harness/assertions/everything-in-redis.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { Service } from "../../harness/processes/service.ts";
import { eventOf, signatureOf, StripeStub } from "../../harness/stubs/stripe-stub.ts";
import {
  acknowledged,
  counted,
  notCredited,
  type EventDelivery,
  sendEvent,
  unsigned,
} from "../../harness/clients/topups.ts";

let stub: StripeStub;
let service: Service;
beforeAll(async () => {
  stub = await StripeStub.start();
  service = await Service.start({ workers: 0, environment: stub.environment });
});
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
  await service.stop();
  await stub.close();
});

const tell = (event: unknown, sending?: EventDelivery) => sendEvent(service, event, sending);
const count = (what: () => Promise<unknown>) => counted(service, what);

test("nothing unsigned is credited: a wrong secret, an old signature, another body, none, or one of another kind", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const event = eventOf(stub.paid(organizationId, 1_000));
  const body = JSON.stringify(event);
  const right = signatureOf(body);
  const wrongs: EventDelivery[] = [
    { signature: signatureOf(body, { secret: "whsec_anotherone" }) },
    { signature: signatureOf(body, { ageSeconds: 400 }) },
    { body: body.replace("1000", "9000") },
    { body: `${body} ` },
    { body: "" },
    { signature: "" },
    { signature: "x" },
    { signature: right.replace("v1=", "v0=") },
    { signature: `${right.slice(0, right.indexOf(","))},v1=` },
    { signature: right.replace(/t=\d+/, "t=0") },
    { headers: { "stripe-signature": "", "x-signature": right } },
  ];
  const counts = await count(async () => {
    for (const wrong of wrongs) expect(await tell(event, wrong)).toMatchObject(unsigned);
  });
  expect(counts).toEqual({ unsigned: wrongs.length });
  expect(await service.ledgerOf(organizationId)).toEqual([]);
  // While a secret is being changed, Stripe signs with the old and the new one.
  const both = `${right},v1=${"0".repeat(64)}`;
  expect(await tell(event, { signature: both })).toMatchObject(acknowledged);
  expect(await service.ledgerOf(organizationId)).toHaveLength(1);
});

test("a body larger than any event is refused before it is read", async () => {
  const huge = eventOf({ pad: "x".repeat(300 * 1024) });
  expect(await tell(huge)).toMatchObject({ status: 400, body: { error: { details: { reason: "body_too_large" } } } });
});

test("a payment that cannot be credited is never acknowledged, told loudly, and credited once it can be", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const nobody = newId("org");
  const broken = stub.paid(organizationId, 1_000, { currency: "eur" });
  expect(await count(async () => expect(await tell(eventOf(broken))).toMatchObject(notCredited))).toEqual({
    unusable: 1,
  });
  const nothing = stub.paid(organizationId, 0);
  expect(await tell(eventOf(nothing))).toMatchObject(notCredited);
  const fraction = stub.paid(organizationId, 10.5);
  expect(await tell(eventOf(fraction))).toMatchObject(notCredited);
  expect(await service.ledgerOf(organizationId)).toEqual([]);

  const early = eventOf(stub.paid(nobody, 1_000));
  const counts = await count(async () => expect(await tell(early)).toMatchObject(notCredited));
  expect(counts).toEqual({ unknown_organization: 1 });
  const told = () => service.apis.flatMap((api) => api.errors).map(({ organizationId: whose }) => whose);
  await expect.poll(told).toContain(nobody);
  // The ledger came back from a backup without the organization, say; now it is there again.
  await service.database.query("insert into organizations (id, name, plan_code) values ($1, 'Late', 'free')", [nobody]);
  expect(await tell(early)).toMatchObject(acknowledged);
  expect(await service.ledgerOf(nobody)).toMatchObject([{ mils: 10_000 }]);
});

test("what the ledger refuses is never acknowledged: an id that another has, a balance that cannot grow", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const full = await service.organization({ creditMils: Number.MAX_SAFE_INTEGER });
  const other = await service.organization({ creditMils: 0 });
  const taken = stub.paid(organizationId, 1_000);
  const slip = { organizationId: other.organizationId, grantId: taken.id, mils: 10_000, reason: "slip" };
  await grantCredit(service.database, slip);
  const counts = await count(async () => {
    expect(await tell(eventOf(taken))).toMatchObject(notCredited);
    expect(await tell(eventOf(stub.paid(full.organizationId, 1_000)))).toMatchObject(notCredited);
  });
  expect(counts).toEqual({ unusable: 2 });
  const told = () => service.apis.flatMap((api) => api.errors).map(({ sessionId, reason }) => ({ sessionId, reason }));
  const reason = "This grant id was used for another organization.";
  await expect.poll(told).toContainEqual({ sessionId: taken.id, reason });
  expect(await service.ledgerOf(organizationId)).toEqual([]);
});

test("what is none of ours is acknowledged and left alone", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const session = stub.paid(organizationId, 1_000);
  const counts = await count(async () => {
    const others = [
      eventOf({ ...session, metadata: {} }),
      eventOf({ ...session, metadata: null }),
      eventOf(null),
      eventOf(session, "checkout.session.expired"),
      eventOf(session, "a.type.of.tomorrow"),
      eventOf({ id: "ch_1", metadata: {} }, "charge.refunded"),
      // Paid with the card of a test, and the key says that payments here are not real, or the other way about.
      eventOf(session, undefined, true),
    ];
    for (const other of others) expect(await tell(other)).toMatchObject(acknowledged);
  });
  expect(counts).toEqual({ foreign: 3, ignored: 4 });
  expect(await service.ledgerOf(organizationId)).toEqual([]);
});

test("refunds and disputes at Stripe are told and counted, and take nothing away", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 70 });
  const charge = { id: "ch_7", payment_intent: "pi_7", metadata: { serpmill_organization: organizationId } };
  const dispute = { id: "dp_7", charge: "ch_7", payment_intent: "pi_7", metadata: {} };
  const counts = await count(async () => {
    expect(await tell(eventOf(charge, "charge.refunded"))).toMatchObject(acknowledged);
    expect(await tell(eventOf(dispute, "charge.dispute.created"))).toMatchObject(acknowledged);
  });
  expect(counts).toEqual({ refunded: 1, disputed: 1 });
  const refund = await service.apis[0]?.line("a payment was refunded at Stripe, which takes no credit back");
  expect(refund).toMatchObject({ organizationId, payment_intent: "pi_7" });
  expect((await service.usage(token)).body.creditBalanceMils).toBe(70);
});

test("the path takes POST alone, and is not there without payments", async () => {
  const get = await service.send("/stripe/webhook");
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
  const plain = await service.startApi({ STRIPE_SECRET_KEY: "", STRIPE_WEBHOOK_SECRET: "" });
  const answer = await fetch(`${plain.url}/stripe/webhook`, { method: "POST", body: "{}" });
  expect(answer.status).toBe(404);
  await plain.stop();
});

test("no secret of Stripe is in a log, a metric, Redis or Postgres", async () => {
  await service.apis[0]?.line("topped up");
  const seen = [
    ...service.apis.map(({ lines, stderr }) => JSON.stringify(lines) + stderr),
    ...(await Promise.all(service.apis.filter(({ hasEnded }) => !hasEnded).map((api) => Exposition.of(api)))).map(
      ({ text }) => text,
    ),
    await everythingInRedis(service.redis),
    await everythingInPostgres(service.databaseUrl),
  ].join("");
  expect(seen).not.toContain("canary");
});
