import { beforeEach, expect, test } from "vitest";
import { forgetSignIns, PageVisitor } from "../../harness/clients/page-visitor.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { payerWithCard } from "../../harness/fixtures/auto-topup-payer.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { eventOf, disconnect } from "../../harness/stubs/stripe-stub.ts";

/** What a payer sets on the page of payments: the card, when and how much, on and off. */

const { stub, service, url } = await startStripeService({ workers: 0, ownPort: true });
beforeEach(() => {
  stub.away = undefined;
});

/** Waits until Stripe has only these cards of a customer. */
const untilAttached = (customer: string, last4s: string[]) =>
  service.until(
    async () =>
      JSON.stringify(stub.cards.attachedTo(customer).map(({ card }) => card.last4)) === JSON.stringify(last4s),
  );

test("a payer sees the saved card by brand and last digits, and nothing is on before the payer says so", async () => {
  const payer = await payerWithCard(service, stub, { creditMils: 0 });
  const page = await payer.page();
  expect(page).toContain('Visa ···· 4242</strong> <span class="aside">expires 4/2030');
  expect(page).toContain('state">Off</span>');
  expect(stub.calls.findLast(({ path }) => path === "/v1/checkout/sessions")?.fields).toMatchObject({
    mode: "setup",
    customer: payer.customer,
    "allowed_payment_method_types[0]": "card",
    "metadata[serpmill_organization]": payer.organizationId,
    "setup_intent_data[metadata][serpmill_organization]": payer.organizationId,
    success_url: `${url}/billing/payments?done=card_saved`,
    cancel_url: `${url}/billing/payments?done=card_cancelled`,
  });
  await payer.switchOn({ threshold: "$7.5" });
  await payer.untilCredited();
  await payer.send("/off");
  expect(await payer.page()).toContain('value="7.50"');
  expect(payer.chargedAtStripe()).toEqual([10]);
});

test("another card replaces the first one, which Stripe deletes; both belong to one customer", async () => {
  const payer = await payerWithCard(service, stub);
  const [first] = stub.cards.attachedTo(payer.customer);
  const returned = `/billing/payments?done=card_saved&replaces=${first?.id}`;
  // The browser may return before the event arrives.
  expect((await payer.person.get(returned)).text).toContain("Stripe has not confirmed your card yet.");
  const { session } = await payer.enterCard({ brand: "mastercard", last4: "4444" });
  expect(session.customer).toBe(payer.customer);
  expect(stub.calls.findLast(({ path }) => path === "/v1/checkout/sessions")?.fields["success_url"]).toBe(
    url + returned,
  );
  expect((await payer.person.get(returned)).text).toContain("Card saved.");
  expect(await payer.page()).toContain("Mastercard ···· 4444");
  await untilAttached(payer.customer, ["4444"]);
});

test("the button that removes the card is closed at first, behind the consequence", async () => {
  const payer = await payerWithCard(service, stub);
  const [, closed] = /<details>(.*?)<\/details>/s.exec(await payer.page()) ?? [];
  expect(closed).toMatch(/Remove the card.*Automatic top-up is switched off.*<button class="danger">/s);
});

test("a removed card is deleted at Stripe, also if that is away at first, and a repeated event does not bring it back", async () => {
  const payer = await payerWithCard(service, stub);
  const { session } = await payer.enterCard({ last4: "1881" });
  await untilAttached(payer.customer, ["1881"]);
  stub.away = disconnect;
  expect((await payer.send("/card/remove")).headers.get("location")).toBe("/billing/payments?done=card_removed");
  await service.until(async () => {
    const { rows } = await service.database.query("select from stripe_deletions where attempts > 0");
    return rows.length === 1;
  });
  stub.away = undefined;
  await service.database.query("update stripe_deletions set next_attempt_at = now()");
  await untilAttached(payer.customer, []);
  expect(await sendEvent(service, eventOf(session))).toMatchObject(acknowledged);
  expect(await payer.page()).toContain("Save a card");
  const left = await service.database.query("select from stripe_deletions");
  expect(left.rows).toEqual([]);
});

test("the late event of an earlier card replaces no newer one, and brings none back; Stripe deletes the earlier card", async () => {
  const payer = await payerWithCard(service, stub);
  const enterEarlier = async (last4: string) => {
    await payer.send("/card");
    const session = stub.sessions.at(-1);
    return session && eventOf(stub.cards.enter(session, { last4 }));
  };
  const [first, second] = [await enterEarlier("0001"), await enterEarlier("0002")];
  await payer.enterCard({ last4: "1881" });
  expect(await sendEvent(service, first)).toMatchObject(acknowledged);
  expect(await payer.page()).toContain("···· 1881");
  await untilAttached(payer.customer, ["0002", "1881"]);
  await payer.send("/card/remove");
  expect(await sendEvent(service, second)).toMatchObject(acknowledged);
  expect(await payer.page()).toContain("Save a card");
  await untilAttached(payer.customer, []);
});

test("while Stripe is away, saving a card says that nothing was charged; its event is sent again", async () => {
  const payer = await payerWithCard(service, stub);
  stub.away = disconnect;
  const { status, text } = await payer.send("/card");
  expect([status, text]).toEqual([503, expect.stringContaining("Nothing was charged")]);
  stub.away = undefined;
  await payer.send("/card");
  const begun = stub.sessions.at(-1);
  const event = begun && eventOf(stub.cards.enter(begun, { last4: "0005" }));
  stub.away = disconnect;
  expect((await sendEvent(service, event)).status).toBe(503);
  stub.away = undefined;
  for (let count = 0; count < 2; count += 1) expect(await sendEvent(service, event)).toMatchObject(acknowledged);
  expect(await payer.page()).toContain("···· 0005");
});

test("a payer whose customer is gone at Stripe saves a card under a new one, which is charged", async () => {
  const payer = await payerWithCard(service, stub, { creditMils: 0 });
  stub.cards.customers.delete(payer.customer);
  const { session } = await payer.enterCard({ last4: "1117" });
  expect(await payer.page()).toContain("···· 1117");
  await payer.switchOn();
  await payer.untilCredited();
  expect(stub.cards.paid.at(-1)).toMatchObject({ customer: session.customer });
});

test("saving a card twice at once leaves one customer at Stripe, and an erased organization none", async () => {
  for (const { change, statuses } of [
    { change: "select $1", statuses: [303, 303] },
    { change: "update organizations set erased_at = now() where id = $1", statuses: [401, 401] },
  ]) {
    const { organizationId, token } = await service.organization();
    const person = new PageVisitor(service);
    await forgetSignIns(service);
    await person.signIn(token);
    const customers = () =>
      [...stub.cards.customers].filter(([, { metadata }]) => metadata["serpmill_organization"] === organizationId);
    const answers = await asOwner(service.databaseUrl, async (owner) => {
      // Neither click can store its customer before both are at Stripe.
      await owner.query("begin; lock table auto_topups in share mode");
      await owner.query(change, [organizationId]);
      const form = { organization: organizationId };
      const sent = [1, 2].map(() => person.post("/billing/auto-topup/card", form));
      await service.until(async () => customers().length === 2);
      await owner.query("commit");
      return Promise.all(sent);
    });
    expect(answers.map(({ status }) => status)).toEqual(statuses);
    const used = new Set(
      stub.sessions.filter((one) => one.client_reference_id === organizationId).map((one) => one.customer),
    );
    await service.until(async () => customers().length === used.size);
    expect(customers().map(([id]) => id)).toEqual([...used]);
  }
});

test("a page from before automatic top-up was changed or switched off changes its terms no more", async () => {
  const payer = await payerWithCard(service, stub);
  const was = async () => ({ was: /name="was" value="([^"]*)"/.exec(await payer.page())?.[1] ?? "" });
  const before = await was();
  const first = { threshold: "5", mils: "10000", ceiling: "100" };
  const lowered = { ...first, ceiling: "50" };
  const save = async (fields: Record<string, string>) => (await payer.send("", fields)).headers.get("location");
  expect(await save({ ...first, ...before })).toBe("/billing/payments?done=on");
  expect(await save({ ...lowered, ...before })).toBe("/billing/payments?done=changed_meanwhile");
  expect(await save({ ...lowered, ...(await was()) })).toBe("/billing/payments?done=on");
  expect(await save({ ...first, ...before })).toBe("/billing/payments?done=changed_meanwhile");
  // A second click.
  expect(await save({ ...lowered, ...before })).toBe("/billing/payments?done=on");
  const on = await was();
  await payer.send("/off");
  expect(await save({ ...lowered, threshold: "6", ...on })).toBe("/billing/payments?done=changed_meanwhile");
  expect(await save({ ...lowered, ...on })).toBe("/billing/payments?done=changed_meanwhile");
  expect(await payer.page()).toContain('state">Off</span>');
});

test("the card of another customer, and of an organization that is unknown, is not saved", async () => {
  const [payer, other] = [await payerWithCard(service, stub), await payerWithCard(service, stub)];
  const { session } = await other.enterCard({ last4: "9999" });
  for (const organization of [payer.organizationId, "org_unknown"]) {
    const metadata = { serpmill_organization: organization };
    expect(await sendEvent(service, eventOf({ ...session, metadata }))).toMatchObject(acknowledged);
  }
  expect(await payer.page()).toContain("···· 4242");
});

test.each([
  { title: "a threshold of nothing", fields: { threshold: "0" }, says: "Enter an amount above zero" },
  { title: "an amount that is not on offer", fields: { mils: "7000" }, says: "Choose one of these amounts." },
  { title: "a ceiling below the amount", fields: { ceiling: "9.99" }, says: "at least the amount of one top-up" },
  { title: "no number", fields: { ceiling: '"><script>' }, says: "&quot;&gt;&lt;script&gt;" },
])("$title is refused, and nothing is switched on", async ({ fields, says }) => {
  const payer = await payerWithCard(service, stub);
  const { status, text } = await payer.send("", { threshold: "5", mils: "10000", ceiling: "50", ...fields });
  expect([status, text]).toEqual([400, expect.stringContaining(says)]);
  // A screen reader reads the problem with its field.
  for (const field of Object.keys(fields)) expect(text).toMatch(new RegExp(`aria-describedby="[^"]*${field}-problem"`));
  expect(await payer.page()).toContain('state">Off</span>');
});

test("without a card nothing is switched on, and where Stripe is not configured the page has nothing of it", async () => {
  const { organizationId, token } = await service.organization();
  await service.startApi({ API_PORT: "0", STRIPE_SECRET_KEY: "", STRIPE_WEBHOOK_SECRET: "" });
  for (const [api, location, status] of [
    [0, "/billing/payments?done=no_card", 303],
    [service.apis.length - 1, null, 404],
  ] as const) {
    const person = new PageVisitor(service);
    person.api = api;
    await forgetSignIns(service);
    await person.signIn(token);
    const form = { organization: organizationId, threshold: "5", mils: "10000", ceiling: "50" };
    const answer = await person.post("/billing/auto-topup", form);
    expect([answer.status, answer.headers.get("location")]).toEqual([status, location]);
    const { text } = await person.get("/billing/payments");
    expect(text.includes("Automatic top-up")).toBe(status === 303);
  }
});
