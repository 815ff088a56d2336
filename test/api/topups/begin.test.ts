import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { pino } from "pino";
import { openTopups, type Topups } from "../../../api/topups/topups.ts";
import { readConfig } from "../../../shared/config.ts";
import { type Context, openContext } from "../../../shared/context.ts";
import { newId } from "../../../shared/ids.ts";
import { drip, hang, hangUp, refusal, stranger, stripeKey, StripeStub } from "../../harness/stubs/stripe-stub.ts";

const organizationId = newId("org");
const lines: string[] = [];
const contexts: Context[] = [];
let stub: StripeStub;
let topups: Topups;
beforeAll(async () => {
  stub = await StripeStub.start();
  topups = await opened(stub.environment);
});
afterAll(async () => {
  for (const { shutdown, log } of contexts) await shutdown.run(log);
  await stub.close();
});
afterEach(() => {
  stub.calls.length = 0;
  stub.checkoutOrigin = "https://checkout.stripe.com";
  lines.length = 0;
});

/** Top-ups with these settings, as an API opens them; nothing here asks Postgres or Redis. */
async function tryOpen(settings: Record<string, string>): Promise<Topups | undefined> {
  const nowhere = { DATABASE_URL: "postgres://127.0.0.1:1/none", REDIS_URL: "redis://127.0.0.1:1" };
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  const context = openContext({
    config: readConfig({ ...nowhere, ...settings }),
    name: "test",
    databaseSizeMax: 1,
    log,
  });
  context.redis.disconnect();
  contexts.push(context);
  return openTopups(context);
}

async function opened(settings: Record<string, string>): Promise<Topups> {
  const found = await tryOpen(settings);
  if (!found) throw new Error("no top-ups");
  return found;
}

const wanted = { organizationId, mils: 25_000, returnPath: "/billing" };
const unavailable = { code: "unavailable", details: { reason: "payments_unavailable", retryAfterMs: 5_000 } };

test("without a key of Stripe there are no top-ups", async () => {
  expect(await tryOpen({ PUBLIC_URL: "https://serp.example" })).toBeUndefined();
});

test("a top-up begins as a session over the amount, for the organization, and comes back to us", async () => {
  const { url } = await topups.begin(wanted);
  expect(url).toBe(stub.sessions.at(-1)?.url);
  expect(stub.calls).toEqual([
    {
      method: "POST",
      path: "/v1/checkout/sessions",
      idempotencyKey: expect.stringMatching(/^topup_[0-7][0-9a-z]{25}$/),
      fields: {
        mode: "payment",
        client_reference_id: organizationId,
        "metadata[serpmill_organization]": organizationId,
        "metadata[serpmill_mils]": "25000",
        "payment_intent_data[metadata][serpmill_organization]": organizationId,
        "payment_intent_data[metadata][serpmill_mils]": "25000",
        "adaptive_pricing[enabled]": "false",
        "line_items[0][quantity]": "1",
        "line_items[0][price_data][currency]": "usd",
        "line_items[0][price_data][unit_amount]": "2500",
        "line_items[0][price_data][product_data][name]": "25000 credits",
        success_url: "https://serp.example/billing?topup=paid",
        cancel_url: "https://serp.example/billing?topup=cancelled",
      },
    },
  ]);
});

test("only what the operator offers can be begun", async () => {
  expect(topups.amountsMils).toEqual([10_000, 25_000, 100_000]);
  const others = await opened({ ...stub.environment, TOPUP_AMOUNTS_USD: "7" });
  expect(others.amountsMils).toEqual([7_000]);
  await expect(others.begin({ ...wanted, mils: 7_000 })).resolves.toMatchObject({ url: expect.any(String) });
  stub.calls.length = 0;
  for (const mils of [7_000, 0, -10_000, 10_001, 10_000.5, Number.NaN, 1e15]) {
    await expect(topups.begin({ ...wanted, mils })).rejects.toMatchObject({
      code: "bad_request",
      details: { reason: "amount_not_offered", offeredMils: [10_000, 25_000, 100_000] },
    });
  }
  expect(stub.calls).toEqual([]);
});

test("a call whose answer was lost is sent again under its key, and makes no second session", async () => {
  const before = stub.sessions.length;
  stub.faults.push(hangUp);
  const { url } = await topups.begin(wanted);
  expect(stub.sessions.slice(before).map((session) => session.url)).toEqual([url]);
  expect(new Set(stub.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  expect(stub.calls).toHaveLength(2);
});

test("two top-ups of the same amount are two", async () => {
  const urls = [await topups.begin(wanted), await topups.begin(wanted)].map(({ url }) => url);
  expect(new Set(urls).size).toBe(2);
});

test.each([
  { name: "is down", trouble: refusal(500, "api_error", stripeKey) },
  { name: "is overloaded", trouble: refusal(429, "rate_limit", stripeKey) },
  { name: "refuses the request", trouble: refusal(400, "invalid_request_error", stripeKey) },
  { name: "never answers", trouble: hang },
  { name: "never comes to the end of its answer", trouble: drip },
  { name: "hangs up", trouble: hangUp },
  { name: "is a stranger", trouble: stranger },
])("where Stripe $name, the answer is 503 in the end, and no secret is told", async ({ trouble }) => {
  stub.faults.push(trouble, trouble);
  await expect(topups.begin(wanted)).rejects.toMatchObject(unavailable);
  stub.faults.length = 0;
  expect(lines.join("")).toContain("Stripe did not begin a top-up");
  expect(lines.join("")).not.toContain("canary");
});

test("where Stripe's page is at another origin than the policy of our pages allows, the log says what to set", async () => {
  const checkoutOrigin = "https://pay.example";
  const own = await opened({ ...stub.environment, STRIPE_CHECKOUT_ORIGIN: `${checkoutOrigin}/` });
  expect(own.checkoutOrigin).toBe(checkoutOrigin);
  await expect(own.begin(wanted)).rejects.toMatchObject(unavailable);
  stub.checkoutOrigin = checkoutOrigin;
  await expect(topups.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
    organizationId,
    sessionId: stub.sessions.at(-1)?.id,
    origin: checkoutOrigin,
    msg: "Stripe's page is at another origin: set STRIPE_CHECKOUT_ORIGIN to it",
  });
  const { url } = await own.begin(wanted);
  expect(url).toBe(stub.sessions.at(-1)?.url);
});

test("a key that Stripe does not know is told without the key", async () => {
  const wrong = await opened({ ...stub.environment, STRIPE_SECRET_KEY: "rk_test_canaryWrong99" });
  await expect(wrong.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ type: "StripeAuthenticationError", statusCode: 401 });
  expect(lines.join("")).not.toContain("canary");
});

test("a Stripe that is away is told by what the network said", async () => {
  const gone = await StripeStub.start();
  const away = await opened(gone.environment);
  await gone.close();
  await expect(away.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ network: "ECONNREFUSED" });
});

test.each([
  ["sk_test_abcdefgh1", false],
  ["rk_live_abcdefgh1", true],
  ["sk_live_abcdefgh1", true],
])("payments with %s are real: %s", async (key, isLive) => {
  expect((await opened({ ...stub.environment, STRIPE_SECRET_KEY: key })).isLive).toBe(isLive);
});
