import { expect, test } from "vitest";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { everythingInPostgres, everythingInRedis } from "../../harness/assertions/everything-in-redis.ts";
import { Exposition } from "../../harness/assertions/metrics.ts";
import { sendRaw } from "../../harness/clients/raw-http.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { eventOf, signatureOf } from "../../harness/stubs/stripe-stub.ts";
import {
  acknowledged,
  countOutcomes,
  notCredited,
  type EventDelivery,
  sendEvent,
  unsigned,
} from "../../harness/clients/topups.ts";

const { stub, service } = await startStripeService({ workers: 0 });

const send = (event: unknown, sending?: EventDelivery) => sendEvent(service, event, sending);
const count = (action: () => Promise<unknown>) => countOutcomes(service, action);

test("an event without a valid signature is refused, credits nothing, and the log says why", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const event = eventOf(stub.paid(organizationId, 1_000));
  const body = JSON.stringify(event);
  const right = signatureOf(body);
  const wrongs: [why: string, sending: EventDelivery][] = [
    ["no_match", { signature: signatureOf(body, { secret: "whsec_anotherone" }) }],
    ["too_old", { signature: signatureOf(body, { ageSeconds: 400 }) }],
    ["no_match", { signature: signatureOf(body, { secret: "whsec_anotherone", ageSeconds: 400 }) }],
    ["no_match", { body: body.replace("1000", "9000") }],
    ["no_match", { body: `${body} ` }],
    ["no_match", { body: "" }],
    ["missing", { signature: "" }],
    ["no_match", { signature: "x" }],
    ["no_match", { signature: right.replace("v1=", "v0=") }],
    ["no_match", { signature: `${right.slice(0, right.indexOf(","))},v1=` }],
    ["no_match", { signature: right.replace(/t=\d+/, "t=0") }],
    ["missing", { headers: { "stripe-signature": "", "x-signature": right } }],
  ];
  const counts = await count(async () => {
    for (const [, wrong] of wrongs) expect(await send(event, wrong)).toMatchObject(unsigned);
  });
  const missing = wrongs.filter(([why]) => why === "missing").length;
  expect(counts).toEqual({ unsigned: missing, signature_refused: wrongs.length - missing });
  const logged = () =>
    service.apis.flatMap(({ lines }) => lines).flatMap(({ msg, signature }) => (msg === "request" && signature) || []);
  await expect.poll(logged).toEqual(wrongs.map(([why]) => why));
  expect(await service.ledgerOf(organizationId)).toEqual([]);
  // While a secret is being changed, Stripe signs with the old and the new one.
  const both = `${right},v1=${"0".repeat(64)}`;
  expect(await send(event, { signature: both })).toMatchObject(acknowledged);
  expect(await service.ledgerOf(organizationId)).toHaveLength(1);
});

test("a body larger than any event is refused before it is read", async () => {
  const huge = eventOf({ pad: "x".repeat(300 * 1024) });
  expect(await send(huge)).toMatchObject({ status: 400, body: { error: { details: { reason: "body_too_large" } } } });
});

test("a request without a signature is refused before its body is read", async () => {
  const head = ["POST /stripe/webhook HTTP/1.1", "Host: a", "Content-Type: application/json", "Content-Length: 60000"];
  for (const signatures of [[], ["Stripe-Signature: t=1,v1=a", "Stripe-Signature: t=1,v1=a"]]) {
    const { answers, closed } = await sendRaw(
      service.apis[0]?.url ?? "",
      `${[...head, ...signatures].join("\r\n")}\r\n\r\n`,
    );
    expect(answers[0]).toMatchObject({ status: 400, body: { error: { details: { reason: "signature_invalid" } } } });
    expect(closed).toBe(true);
  }
});

test("a payment that cannot be credited is not acknowledged, logged as an error, and credited once it can be", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const unknown = newId("org");
  const broken = stub.paid(organizationId, 1_000, { currency: "eur" });
  expect(await count(async () => expect(await send(eventOf(broken))).toMatchObject(notCredited))).toEqual({
    unusable: 1,
  });
  const nothing = stub.paid(organizationId, 0);
  expect(await send(eventOf(nothing))).toMatchObject(notCredited);
  const fraction = stub.paid(organizationId, 10.5);
  expect(await send(eventOf(fraction))).toMatchObject(notCredited);
  expect(await service.ledgerOf(organizationId)).toEqual([]);

  const early = eventOf(stub.paid(unknown, 1_000));
  const counts = await count(async () => expect(await send(early)).toMatchObject(notCredited));
  expect(counts).toEqual({ unknown_organization: 1 });
  const loggedOrganizations = () =>
    service.apis.flatMap((api) => api.errors).map(({ organizationId: logged }) => logged);
  await expect.poll(loggedOrganizations).toContain(unknown);
  // For example after a restore from a backup without the organization, once the organization exists again.
  await service.database.query("insert into organizations (id, name, plan_code) values ($1, 'Late', 'free')", [
    unknown,
  ]);
  expect(await send(early)).toMatchObject(acknowledged);
  expect(await service.ledgerOf(unknown)).toMatchObject([{ mils: 10_000 }]);
});

test("a payment that the ledger refuses is not acknowledged: a grant id of another organization, a full balance", async () => {
  const { organizationId } = await service.organization({ creditMils: 0 });
  const full = await service.organization({ creditMils: Number.MAX_SAFE_INTEGER });
  const other = await service.organization({ creditMils: 0 });
  const taken = stub.paid(organizationId, 1_000);
  const slip = { organizationId: other.organizationId, grantId: taken.id, mils: 10_000, reason: "slip" };
  await grantCredit(service.database, slip);
  const counts = await count(async () => {
    expect(await send(eventOf(taken))).toMatchObject(notCredited);
    expect(await send(eventOf(stub.paid(full.organizationId, 1_000)))).toMatchObject(notCredited);
  });
  expect(counts).toEqual({ unusable: 2 });
  const logged = () => service.apis.flatMap((api) => api.errors).map(({ grantId, reason }) => ({ grantId, reason }));
  const reason = "This grant id was used for another organization.";
  await expect.poll(logged).toContainEqual({ grantId: taken.id, reason });
  expect(await service.ledgerOf(organizationId)).toEqual([]);
});

test("an event of another application, type or mode is acknowledged and ignored", async () => {
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
      // A live payment while our key is a test key.
      eventOf(session, undefined, true),
    ];
    for (const other of others) expect(await send(other)).toMatchObject(acknowledged);
  });
  expect(counts).toEqual({ foreign: 3, ignored: 4 });
  expect(await service.ledgerOf(organizationId)).toEqual([]);
});

test("refunds and disputes at Stripe are logged and counted, and remove no credit", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 70 });
  const charge = { id: "ch_7", payment_intent: "pi_7", metadata: { serpmill_organization: organizationId } };
  const dispute = { id: "dp_7", charge: "ch_7", payment_intent: "pi_7", metadata: {} };
  const counts = await count(async () => {
    expect(await send(eventOf(charge, "charge.refunded"))).toMatchObject(acknowledged);
    expect(await send(eventOf(dispute, "charge.dispute.created"))).toMatchObject(acknowledged);
  });
  expect(counts).toEqual({ refunded: 1, disputed: 1 });
  const refund = await service.apis[0]?.line("a payment was refunded at Stripe; its credit was not removed");
  expect(refund).toMatchObject({ organizationId, payment_intent: "pi_7" });
  expect((await service.usage(token)).body.creditBalanceMils).toBe(70);
});

test("the webhook accepts only POST, and is 404 without payments", async () => {
  const get = await service.send("/stripe/webhook");
  expect([get.status, get.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
  const plain = await service.startApi({ STRIPE_SECRET_KEY: "", STRIPE_WEBHOOK_SECRET: "" });
  const answer = await fetch(`${plain.url}/stripe/webhook`, { method: "POST", body: "{}" });
  expect(answer.status).toBe(404);
  await plain.stop();
});

test("no Stripe secret is in a log, a metric, Redis or Postgres", async () => {
  await service.apis[0]?.line("top-up credited");
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
