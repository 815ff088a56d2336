import { beforeEach, expect, test } from "vitest";
import { newId } from "../../../shared/ids.ts";
import { forgetSignIns, PageVisitor, signIn } from "../../harness/clients/page-visitor.ts";
import { acknowledged, sendEvent } from "../../harness/clients/topups.ts";
import { backdateLedger } from "../../harness/fixtures/backdate-ledger.ts";
import { startStripeService } from "../../harness/processes/stripe-stack.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { eventOf, refusal } from "../../harness/stubs/stripe-stub.ts";

/** What was paid, with Stripe's receipts, and the statements of months. */

const { stub, service } = await startStripeService({ workers: 0, ownPort: true });
beforeEach(() => forgetSignIns(service));

async function signedIn() {
  const { organizationId, token } = await service.organization({ creditMils: 0 });
  return { organizationId, token, person: await signIn(service, { token }) };
}

/** Credits a payment of this many cents. @returns the id of its session. */
async function topUp(organizationId: string, cents: number): Promise<string> {
  const session = stub.paid(organizationId, cents);
  expect(await sendEvent(service, eventOf(session))).toMatchObject(acknowledged);
  return session.id;
}

const inDollars = (text: string) => text.replaceAll(/<\/?data[^>]*>/g, "");
const cellsOf = (csv: string) =>
  csv
    .trim()
    .split("\n")
    .map((line) => line.split(","));

test("a top-up has a link that leads to Stripe's receipt, asked for at each click", async () => {
  const { organizationId, person } = await signedIn();
  expect((await person.get("/billing/payments")).text).toContain("No top-ups yet.");
  const sessionId = await topUp(organizationId, 2_500);
  const { text } = await person.get("/billing/payments");
  expect(inDollars(text)).toContain("$25.000");
  expect(text).toContain(`href="/billing/receipts/${sessionId}"`);
  expect(text).toMatch(/One-time payment[\s\S]*Stripe receipt[\s\S]*not a tax invoice/);
  stub.calls.length = 0;
  const answer = await person.get(`/billing/receipts/${sessionId}`);
  expect([answer.status, answer.headers.get("location")]).toEqual([
    303,
    `https://pay.stripe.com/receipts/payment/${sessionId}?s=ap`,
  ]);
  expect(stub.calls).toMatchObject([
    {
      method: "GET",
      path: `/v1/checkout/sessions/${sessionId}`,
      fields: { "expand[0]": "payment_intent.latest_charge" },
    },
  ]);
});

test("the receipt of another organization's top-up is not found, and Stripe is not asked", async () => {
  const other = await signedIn();
  const sessionId = await topUp(other.organizationId, 1_000);
  const { person } = await signedIn();
  stub.calls.length = 0;
  for (const id of [sessionId, "cs_test_unknown", "%00", "..%2Fbalance"])
    expect((await person.get(`/billing/receipts/${id}`)).status).toBe(404);
  expect(stub.calls).toEqual([]);
});

test.each([
  { title: "Stripe has none", receiptUrl: null },
  { title: "it is at another site", receiptUrl: "https://stripe.com.evil.example/receipt" },
  { title: "it is not over https", receiptUrl: "http://pay.stripe.com/receipt" },
])("where $title, the page says that there is no receipt", async ({ receiptUrl }) => {
  const { organizationId, person } = await signedIn();
  const sessionId = await topUp(organizationId, 1_000);
  const { receiptUrlOf } = stub;
  stub.receiptUrlOf = () => receiptUrl;
  const { status, text } = await person.get(`/billing/receipts/${sessionId}`);
  stub.receiptUrlOf = receiptUrlOf;
  expect([status, text]).toEqual([404, expect.stringContaining("There is no receipt")]);
});

test("while Stripe is down, the page says that payment and credit are as they were", async () => {
  const { organizationId, person } = await signedIn();
  const sessionId = await topUp(organizationId, 1_000);
  const down = refusal(500, "api_error", "down");
  stub.faults.push(down, down);
  const { status, text } = await person.get(`/billing/receipts/${sessionId}`);
  expect([status, text]).toEqual([503, expect.stringContaining("Your payments and your credit have not changed")]);
});

test("many top-ups are on pages of 25", async () => {
  const { organizationId, person } = await signedIn();
  const at = new Date();
  const topups = Array.from(
    { length: 26 },
    (_, index) => ({ at, kind: "grant", mils: 1_000 + index, reason: "top-up" }) as const,
  );
  await backdateLedger(service.databaseUrl, organizationId, topups);
  const newest = inDollars((await person.get("/billing/payments")).text);
  expect([newest.includes("$1.025"), newest.includes("$1.001"), newest.includes("$1.000<")]).toEqual([
    true,
    true,
    false,
  ]);
  const older = /\/billing\/payments\?before=\d+/.exec(newest)?.[0] ?? "";
  const oldest = inDollars((await person.get(older)).text);
  expect([oldest.includes("$1.000<"), oldest.includes("$1.001")]).toEqual([true, false]);
});

/** An organization since January with entries in January and February. */
async function withMonths() {
  const made = await signedIn();
  const { organizationId } = made;
  await asOwner(service.databaseUrl, (owner) =>
    owner.query("update organizations set created_at = '2026-01-05T00:00:00Z' where id = $1", [organizationId]),
  );
  const at = (text: string) => new Date(text);
  const requestId = newId("req");
  await backdateLedger(service.databaseUrl, organizationId, [
    { at: at("2026-01-05T08:00:00Z"), kind: "grant", mils: 10_000, reason: "=1+1" },
    { at: at("2026-01-06T08:00:00Z"), kind: "charge", mils: 5 },
    { at: at("2026-02-03T08:00:00Z"), kind: "charge", mils: 1_234, requestId },
    { at: at("2026-02-03T08:00:01Z"), kind: "reversal", mils: 1_234, requestId, reason: "caller_disconnected" },
    { at: at("2026-02-04T08:00:00Z"), kind: "charge", mils: 20 },
    { at: at("2026-02-05T08:00:00Z"), kind: "correction", mils: -2_500, reason: "=granted twice" },
    { at: at("2026-02-28T08:00:00Z"), kind: "grant", mils: 25_000, reason: "top-up" },
  ]);
  return made;
}

test("a statement has opening balance, credit, corrections, net charges and closing balance, as a page and as CSV", async () => {
  const { person } = await withMonths();
  const list = (await person.get("/billing/payments")).text;
  expect(list).toContain('href="/billing/statements/2026-02"');
  expect(list).not.toContain("2025-12");
  const { status, text } = await person.get("/billing/statements/2026-02");
  expect(status).toBe(200);
  const shown = inDollars(text);
  const rowsShown = Object.fromEntries(
    [...shown.matchAll(/<th scope="row">([A-Z][^<]*)<\/th><td class="number">(?:<strong>)?([−$\d.,]+)/g)].map(
      ([, label = "", amount = ""]) => [label, amount],
    ),
  );
  expect(rowsShown).toEqual({
    "Opening balance": "$9.995",
    "Credit added": "$25.000",
    "Corrections by the operator": "−$2.500",
    "Searches charged": "−$1.254",
    "Credited back": "$1.234",
    "Closing balance": "$32.475",
  });
  expect(shown).toContain("Correction: =granted twice");

  const csv = await person.get("/billing/statements.csv?month=2026-02");
  expect(csv.headers.get("content-disposition")).toBe('attachment; filename="serpmill-statement-2026-02.csv"');
  const rows = cellsOf(csv.text);
  expect(
    rows.map(([time, kind, , , searches, mils, usd, balance]) => [time, kind, searches, mils, usd, balance]),
  ).toEqual([
    ["time_utc", "kind", "searches", "mils", "usd", "balance_mils"],
    ["2026-02-01", "opening_balance", "", "", "", "9995"],
    ["2026-02-05T08:00:00.000Z", "credit_corrected", "", "-2500", "-2.5", ""],
    ["2026-02-28T08:00:00.000Z", "credit_added", "", "25000", "25", ""],
    ["2026-02-03", "charged", "1", "-1234", "-1.234", ""],
    ["2026-02-03", "credited_back", "1", "1234", "1.234", ""],
    ["2026-02-04", "charged", "1", "-20", "-0.02", ""],
    ["2026-02-28", "closing_balance", "", "", "", "32475"],
  ]);
  // Notes that a spreadsheet would run.
  expect(csv.text).toContain("'=granted twice");
  expect((await person.get("/billing/statements.csv?month=2026-01")).text).toContain("'=1+1");
  // A month without entries.
  expect((await person.get("/billing/statements/2026-03")).text).not.toContain("-0 mils");
});

test.each(["2025-12", "2999-01", "2026-13", "2026-1", "../searches", "2026-01'--"])(
  "there is no statement of %s",
  async (month) => {
    const { person } = await withMonths();
    const path = encodeURIComponent(month);
    expect((await person.get(`/billing/statements/${path}`)).status).toBe(404);
    expect((await person.get(`/billing/statements.csv?month=${path}`)).status).toBe(404);
  },
);

test("without a session there is neither receipt nor CSV", async () => {
  const visitorOnly = new PageVisitor(service);
  for (const path of ["/billing/receipts/cs_test_1", "/billing/statements.csv?month=2026-02"])
    expect((await visitorOnly.get(path)).status).toBe(401);
});
