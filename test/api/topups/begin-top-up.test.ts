import { pino } from "pino";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { openTopups, type Topups } from "../../../api/topups/topups.ts";
import { readConfig } from "../../../shared/config.ts";
import { newId } from "../../../shared/ids.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { drip, hang, disconnect, refusal, stranger, stripeKey, StripeStub } from "../../harness/stubs/stripe-stub.ts";

/** The first half of a top-up: a Checkout Session at Stripe. Nothing here needs Postgres or Redis. */

// Shorter than in production, so that a call to a Stripe stub that never answers ends soon.
const shortTimeoutMs = 500;

const organizationId = newId("org");
const logLines: string[] = [];
const metrics = openMetrics();
const stub = await StripeStub.start();
const topups = await open(stub.environment);
afterAll(() => stub.close());
afterEach(() => {
  stub.calls.length = 0;
  stub.checkoutOrigin = "https://checkout.stripe.com";
  logLines.length = 0;
});

interface Opening {
  lines?: string[];
  attemptTimeoutMs?: number;
}

/** Top-ups with these settings, as an API opens them. */
function tryOpen(settings: Record<string, string>, opening: Opening = {}): Promise<Topups | undefined> {
  const { lines = logLines, attemptTimeoutMs } = opening;
  const required = {
    DATABASE_URL: "postgres://127.0.0.1:1/none",
    REDIS_URL: "redis://127.0.0.1:1",
    SERP_PROVIDERS: "sandbox",
  };
  const log = pino({ level: "trace" }, { write: (line: string) => void lines.push(line) });
  return openTopups({ config: readConfig({ ...required, ...settings }), metrics, log }, attemptTimeoutMs);
}

async function open(settings: Record<string, string>, opening?: Opening): Promise<Topups> {
  const opened = await tryOpen(settings, opening);
  if (!opened) throw new Error("no top-ups");
  return opened;
}

const wanted = { organizationId, organizationName: "Acme", mils: 25_000, returnPath: "/billing" };
const unavailable = { code: "unavailable", details: { reason: "payments_unavailable", retryAfterMs: 5_000 } };

test("without a Stripe key there are no top-ups", async () => {
  expect(await tryOpen({ PUBLIC_URL: "https://serp.example" })).toBeUndefined();
});

test("a top-up begins as a Checkout Session for the amount and the organization, and returns to our address", async () => {
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
        "line_items[0][price_data][product_data][name]": "Credit of $25.000",
        "line_items[0][price_data][product_data][description]": `For Acme (${organizationId})`,
        success_url: "https://serp.example/billing?topup=paid&payment={CHECKOUT_SESSION_ID}",
        cancel_url: "https://serp.example/billing?topup=cancelled",
      },
    },
  ]);
});

test("a top-up of an amount that is not on offer is refused without a call to Stripe", async () => {
  expect(topups.amountsMils).toEqual([10_000, 25_000, 100_000]);
  const others = await open({ ...stub.environment, TOPUP_AMOUNTS_USD: "7" });
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

test("a call whose answer was lost is retried under its idempotency key, and creates no second session", async () => {
  const before = stub.sessions.length;
  stub.faults.push(disconnect);
  const { url } = await topups.begin(wanted);
  expect(stub.sessions.slice(before).map((session) => session.url)).toEqual([url]);
  expect(new Set(stub.calls.map(({ idempotencyKey }) => idempotencyKey)).size).toBe(1);
  expect(stub.calls).toHaveLength(2);
});

test("two top-ups of the same amount are two sessions", async () => {
  const urls = [await topups.begin(wanted), await topups.begin(wanted)].map(({ url }) => url);
  expect(new Set(urls).size).toBe(2);
});

// Each case has its own Stripe stub: the SDK pauses before a retry, and the pauses then run in parallel.
describe.concurrent("a failing Stripe is answered with 503, and no secret is logged", () => {
  test.each([
    { name: "is down", fault: refusal(500, "api_error", stripeKey) },
    { name: "is overloaded", fault: refusal(429, "rate_limit", stripeKey) },
    { name: "refuses the request", fault: refusal(400, "invalid_request_error", stripeKey) },
    { name: "never answers", fault: hang },
    { name: "never completes its answer", fault: drip },
    { name: "closes the connection", fault: disconnect },
    { name: "answers with something else", fault: stranger },
  ])("if Stripe $name", async ({ fault }) => {
    const failing = await StripeStub.start();
    const lines: string[] = [];
    const own = await open(failing.environment, { lines, attemptTimeoutMs: shortTimeoutMs });
    failing.faults.push(fault, fault);
    await expect(own.begin(wanted)).rejects.toMatchObject(unavailable);
    expect(lines.join("")).toContain("Stripe did not begin a top-up");
    expect(lines.join("")).not.toContain("canary");
    await failing.close();
  });
});

test("if Stripe's payment page has an origin that our policy does not allow, the log says what to set", async () => {
  const checkoutOrigin = "https://pay.example";
  const own = await open({ ...stub.environment, STRIPE_CHECKOUT_ORIGIN: `${checkoutOrigin}/` });
  expect(own.checkoutOrigin).toBe(checkoutOrigin);
  await expect(own.begin(wanted)).rejects.toMatchObject(unavailable);
  stub.checkoutOrigin = checkoutOrigin;
  await expect(topups.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(logLines.at(-1) ?? "")).toMatchObject({
    organizationId,
    sessionId: stub.sessions.at(-1)?.id,
    origin: checkoutOrigin,
    msg: "Stripe's payment page has another origin: set STRIPE_CHECKOUT_ORIGIN to it",
  });
  const { url } = await own.begin(wanted);
  expect(url).toBe(stub.sessions.at(-1)?.url);
});

test("a key that Stripe rejects is logged by its error alone", async () => {
  const wrong = await open({ ...stub.environment, STRIPE_SECRET_KEY: "rk_test_canaryWrong99" });
  await expect(wrong.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(logLines.at(-1) ?? "")).toMatchObject({ type: "StripeAuthenticationError", statusCode: 401 });
  expect(logLines.join("")).not.toContain("canary");
});

test("a Stripe that cannot be reached is logged with the network's error code", async () => {
  const closed = await StripeStub.start();
  const away = await open(closed.environment);
  await closed.close();
  await expect(away.begin(wanted)).rejects.toMatchObject(unavailable);
  expect(JSON.parse(logLines.at(-1) ?? "")).toMatchObject({ network: "ECONNREFUSED" });
});

test.each([
  ["sk_test_abcdefgh1", false],
  ["rk_live_abcdefgh1", true],
  ["sk_live_abcdefgh1", true],
])("with the key %s, payments are real: %s", async (key, isLive) => {
  expect((await open({ ...stub.environment, STRIPE_SECRET_KEY: key })).isLive).toBe(isLive);
});
