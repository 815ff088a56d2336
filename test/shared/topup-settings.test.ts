import { expect, test } from "vitest";
import { ConfigError, readConfig } from "../../shared/config.ts";

const urls = {
  DATABASE_URL: "postgres://localhost/serpmill",
  REDIS_URL: "redis://localhost:6379",
  SERP_PROVIDERS: "sandbox",
};
const publicUrl = { PUBLIC_URL: "https://serp.example/" };
const stripe = { STRIPE_SECRET_KEY: "sk_test_canary12", STRIPE_WEBHOOK_SECRET: "whsec_canary12" };

/** The lines of the error that an operator gets for these settings. */
function problemsOf(settings: Record<string, string>): string[] {
  try {
    readConfig({ ...urls, ...settings });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split("\n  ").slice(1);
    throw error;
  }
}

const anOrigin = "expected a URL that begins with http:// or https:// and has no path";
const aSafeOrigin = "expected a URL that begins with https:// and has no path";
const anAmount = "expected a whole number from 1 to 10000";

test.each([
  { setting: "PUBLIC_URL", value: "canary.example", expected: anOrigin },
  { setting: "PUBLIC_URL", value: "ftp://canary.example", expected: anOrigin },
  { setting: "PUBLIC_URL", value: "https://canary.example/path", expected: anOrigin },
  { setting: "PUBLIC_URL", value: "https://canary:secret@host", expected: anOrigin },
  { setting: "STRIPE_BASE_URL", value: "https://canary.example/v1", expected: anOrigin },
  { setting: "STRIPE_CHECKOUT_ORIGIN", value: "https://canary.example/pay", expected: aSafeOrigin },
  { setting: "STRIPE_CHECKOUT_ORIGIN", value: "http://canary.example", expected: aSafeOrigin },
  { setting: "STRIPE_CHECKOUT_ORIGIN", value: "canary.example", expected: aSafeOrigin },
  { setting: "TOPUP_AMOUNTS_USD", value: "10,,25", expected: anAmount },
  { setting: "TOPUP_AMOUNTS_USD", value: "10000,10001", expected: anAmount },
  { setting: "TOPUP_AMOUNTS_USD", value: "7.50", expected: anAmount },
])("$setting=$value is refused, and the error does not repeat the value", ({ setting, value, expected }) => {
  expect(problemsOf({ [setting]: value })).toEqual([`${setting}: ${expected}`]);
});

test.each([
  {
    given: { STRIPE_SECRET_KEY: stripe.STRIPE_SECRET_KEY },
    missing: [
      "STRIPE_WEBHOOK_SECRET: required together with STRIPE_SECRET_KEY",
      "PUBLIC_URL: required together with STRIPE_SECRET_KEY",
    ],
  },
  {
    given: { STRIPE_WEBHOOK_SECRET: stripe.STRIPE_WEBHOOK_SECRET },
    missing: ["STRIPE_SECRET_KEY: required together with STRIPE_WEBHOOK_SECRET"],
  },
  { given: stripe, missing: ["PUBLIC_URL: required together with STRIPE_SECRET_KEY"] },
  {
    given: { ...publicUrl, STRIPE_SECRET_KEY: "whsec_canary12", STRIPE_WEBHOOK_SECRET: "sk_test_canary12" },
    missing: [
      "STRIPE_SECRET_KEY: expected letters, digits, - or _ that begin with sk_ or rk_",
      "STRIPE_WEBHOOK_SECRET: expected letters, digits, - or _ that begin with whsec_",
    ],
  },
])("incomplete Stripe settings stop the start: $missing.0", ({ given, missing }) => {
  expect(problemsOf(given)).toEqual(missing);
  expect(problemsOf({ ...publicUrl, ...stripe })).toEqual([]);
});

test("a TOPUP_URL that is a path is completed with PUBLIC_URL", () => {
  const read = (settings: Record<string, string>) => readConfig({ ...urls, ...settings });
  expect(read({}).TOPUP_URL).toBe("/billing");
  expect(read(publicUrl)).toMatchObject({
    PUBLIC_URL: "https://serp.example",
    TOPUP_URL: "https://serp.example/billing",
  });
  expect(read({ ...publicUrl, TOPUP_URL: "https://pay.example" }).TOPUP_URL).toBe("https://pay.example");
});
