import { beforeAll, beforeEach, expect, test } from "vitest";
import { forgetSignIns, ownForm, type PageVisitor, signedIn } from "../../harness/clients/page-visitor.ts";
import type { Organization } from "../../harness/processes/service.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { eventOf, refusal, stripeKey } from "../../harness/stubs/stripe-stub.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";

/** A top-up from the account pages to Stripe and back. */

const checkoutOrigin = "https://checkout.stripe.com";

const { stub, service, url } = await startStripeService({ workers: 0, ownPort: true });
beforeEach(() => forgetSignIns(service));

const pay = (person: PageVisitor, { organizationId }: Organization, mils: string) =>
  person.post("/billing/topup", { organization: organizationId, mils });

test("an amount on offer leads to its payment page, for this organization and with the way back", async () => {
  const { organization, person } = await signedIn(service);
  const { text, headers } = await person.get("/billing");
  for (const mils of ["10000", "25000", "100000"]) expect(text).toContain(`<option value="${mils}"`);
  expect(headers.get("content-security-policy")).toContain(`form-action 'self' ${checkoutOrigin};`);
  expect(text).toContain(`name="organization" value="${organization.organizationId}"`);
  expect(text).toContain(`for <strong>Test</strong> <code>${organization.organizationId}</code>`);
  const answer = await pay(person, organization, "25000");
  expect(answer.status).toBe(303);
  expect(answer.headers.get("location")).toBe(stub.sessions.at(-1)?.url);
  expect(stub.calls.at(-1)?.fields).toMatchObject({
    client_reference_id: organization.organizationId,
    "line_items[0][price_data][unit_amount]": "2500",
    "line_items[0][price_data][product_data][description]": `For Test (${organization.organizationId})`,
    success_url: `${url}/billing?topup=paid&payment={CHECKOUT_SESSION_ID}`,
    cancel_url: `${url}/billing?topup=cancelled`,
  });
});

const ownOrigin = "https://pay.example";
/** What the APIs offer, in their order. The first one has the defaults, and only the second an own origin. */
const offers = ["10,25,100", "25", "10,25"];
beforeAll(async () => {
  await service.startApi({ API_PORT: "0", STRIPE_CHECKOUT_ORIGIN: ownOrigin, TOPUP_AMOUNTS_USD: offers[1] ?? "" });
  await service.startApi({ API_PORT: "0", TOPUP_AMOUNTS_USD: offers[2] ?? "" });
});

test("with a custom checkout domain, forms may lead to that domain alone", async () => {
  const { organization, person } = await signedIn(service);
  const toStripe = await person.get("/billing");
  person.api = 1;
  const toOwn = await person.get("/billing");
  const [stripes, own] = [toStripe, toOwn].map(({ headers }) => headers.get("content-security-policy"));
  expect(own).toBe(stripes?.replace(checkoutOrigin, ownOrigin));
  stub.checkoutOrigin = ownOrigin;
  const answer = await pay(person, organization, "25000");
  expect(new URL(answer.headers.get("location") ?? "").origin).toBe(ownOrigin);
  person.api = 0;
  const { status, text } = await pay(person, organization, "25000");
  expect(status).toBe(503);
  expect(text).toContain("No payment was started");
  stub.checkoutOrigin = checkoutOrigin;
});

test.each(offers)("with %s USD on offer, one amount is preselected", async (usd) => {
  const { person } = await signedIn(service);
  person.api = offers.indexOf(usd);
  const { text } = await person.get("/billing");
  const amounts = [...text.matchAll(/<option value="(\d+)"( selected)?>/g)];
  expect(amounts).toHaveLength(usd.split(",").length);
  expect(amounts.filter(([, , selected]) => selected).map(([, mils]) => mils)).toEqual(["25000"]);
});

const foreign = { "sec-fetch-site": "cross-site" };
test.each([
  { title: "an amount that is not offered", fields: { mils: "11000" }, says: "This amount is no longer offered" },
  { title: "no amount", fields: {}, says: "This amount is no longer offered" },
  { title: "no number", fields: { mils: "25000 x" }, says: "This amount is no longer offered" },
  { title: "a page of another organization", fields: { organization: "org_other" }, says: "another organization than" },
  { title: "a form of another site", fields: { mils: "25000" }, headers: foreign, says: "No payment was started" },
])("$title starts no payment, and the page says so", async ({ fields, headers = ownForm, says }) => {
  const { organization, person } = await signedIn(service);
  const before = stub.calls.length;
  const sent = { organization: organization.organizationId, ...fields };
  const { status, text } = await person.post("/billing/topup", sent, headers);
  expect([status, text]).toEqual([400, expect.stringContaining(says)]);
  expect(stub.calls).toHaveLength(before);
});

test("no field and no address of a form makes a payment credit another organization", async () => {
  const [{ organization, person }, { organization: other }] = [await signedIn(service), await signedIn(service)];
  const id = other.organizationId;
  const names = ["client_reference_id", "metadata[serpmill_organization]", "organization[]", "Organization"];
  const fields = Object.fromEntries(names.map((name) => [name, id]));
  const form = { ...fields, organization: organization.organizationId, mils: "10000" };
  expect((await person.post(`/billing/topup?organization=${id}&client_reference_id=${id}`, form)).status).toBe(303);
  expect(stub.calls.at(-1)?.fields).toMatchObject({ client_reference_id: organization.organizationId });
  expect(JSON.stringify(stub.calls.at(-1))).not.toContain(id);
});

test("if Stripe is down, the page says that no payment was begun, and waits for the person's choice", async () => {
  const { organization, person } = await signedIn(service);
  const down = refusal(500, "api_error", stripeKey);
  stub.faults.push(down, down);
  const { status, text, headers } = await pay(person, organization, "10000");
  expect(status).toBe(503);
  expect(text).toContain("No payment was started");
  expect(text).toContain("Nothing was charged");
  expect(headers.get("refresh")).toBeNull();
  expect(text).not.toContain(stripeKey);
});

test("back from Stripe's page the person reads what is known, and nothing for another address", async () => {
  const { person } = await signedIn(service);
  expect((await person.get("/billing?topup=paid")).text).toContain("once Stripe confirms it");
  expect((await person.get("/billing?topup=cancelled")).text).toContain("before the payment");
  expect((await person.get("/billing?topup=other")).text).not.toContain("Stripe sent you back");
});

test("back from Stripe's page the person reads that the payment has arrived once it has, and no other organization does", async () => {
  const [{ organization, person }, other] = [await signedIn(service), await signedIn(service)];
  await pay(person, organization, "25000");
  const { id } = stub.sessions.at(-1) ?? {};
  const back = `/billing?topup=paid&payment=${id}`;
  const before = (await person.get(back)).text;
  expect(before).toContain("once Stripe confirms it");
  expect(before).toContain(`&amp;topup=paid&amp;payment=${id}`); // The open page follows it.
  const session = { ...stub.paid(organization.organizationId, 2_500), id };
  expect(await sendEvent(service, eventOf(session))).toMatchObject(acknowledged);
  const after = (await person.get(back)).text;
  expect(after).toContain("Your payment has arrived");
  expect(after).not.toContain("once Stripe confirms it");
  expect((await other.person.get(back)).text).toContain("once Stripe confirms it");
});
