import { describe, expect, test } from "vitest";
import { z } from "zod";
import { limitDetails } from "../../../shared/credits/limits.ts";
import { errorText } from "../../../shared/errors/error-messages.ts";
import { errorDefinitions } from "../../../api/error-schemas.ts";
import { type ErrorCode, errors, messageOf } from "../../../shared/errors.ts";

/** Every field that the details of any error may have. */
const details = {
  field: "device",
  candidates: ["Springfield,Illinois,United States", "Springfield,Missouri,United States"],
  scope: "usage",
  plan: "free",
  maxDepth: 30,
  priceMils: 5,
  availableMils: 3,
  heldMils: 2,
  topupUrl: "https://pay.example",
  period: "day",
  limitMils: 500,
  renewsAt: "2026-03-02T00:00:00.000Z",
  retryAfterMs: 1_500,
  limit: 60,
  windowSeconds: 90,
  engine: "bing",
  supported: ["google"],
  timeoutMs: 30_000,
};

const reasoned = z.object({ properties: z.object({ reason: z.object({ enum: z.array(z.string()) }) }) });
const codes = Object.keys(errors) as ErrorCode[]; // Object.keys returns strings.
const reasons = codes.flatMap((code) => {
  const { data } = reasoned.safeParse(z.toJSONSchema(errorDefinitions[code].shape.details));
  return (data?.properties.reason.enum ?? []).map((reason) => ({ code, reason }));
});

test.each(reasons)("$code has a message of its own for $reason", ({ code, reason }) => {
  const message = errorText(code, { ...details, reason });
  const others = reasons.filter((other) => other.code === code && other.reason !== reason);
  expect(message).toMatch(/^[^{}]+\.$|\?$/);
  expect(others.map((other) => errorText(code, { ...details, reason: other.reason }))).not.toContain(message);
  expect(message).not.toMatch(/see details/);
});

describe("the message of a 402 names what ran out", () => {
  const shown = {
    priceMils: 5,
    spentMils: 498,
    heldMils: 0,
    topupUrl: "/billing",
    renewsAt: new Date(Date.UTC(2026, 2, 2)),
  };
  const limits = {
    organization: { dayMils: 500, monthMils: 500 },
    token: { tokenId: "tok_a", dayMils: 500, monthMils: 500 },
  };
  test.each([
    { scope: "organization", period: "day", says: "The organization's daily spending limit of 500 mils does not" },
    { scope: "organization", period: "month", says: "The organization's monthly spending limit of 500 mils does not" },
    { scope: "token", period: "day", says: "The token's spending limit of 500 mils for a day does not" },
    { scope: "token", period: "month", says: "The token's spending limit of 500 mils for a month does not" },
  ] as const)("$scope, $period", ({ scope, period, says }) => {
    const message = messageOf("out_of_credits", limitDetails(limits, { scope, period }, shown));
    expect(message).toContain(says);
    expect(message).not.toContain("credit");
    const late = messageOf("out_of_credits", limitDetails(undefined, { scope, period }, shown));
    expect(late).toContain(says.slice(0, says.indexOf(" of 500")));
    expect(late).toContain("does not cover this search. The limit renews");
  });

  test("the credit, with the address at which to top up", () => {
    expect(messageOf("out_of_credits", details)).toBe(
      "The organization's credit does not cover this search: it costs 5 mils, 3 are available, and searches in flight hold 2. " +
        "Top up at https://pay.example.",
    );
  });
});

test("the message of a 504 has its deadline, to a tenth of a second", () => {
  expect(messageOf("engine_timeout", { timeoutMs: 30_000 })).toMatch(/^No answer in time \(30 s at most\)\./);
  expect(messageOf("engine_timeout", { timeoutMs: 4_500, reason: "still_running" })).toMatch(
    /^No answer within 4\.5 s,/,
  );
});

test("the message of a 400 is its first issue, and says how many more there are", () => {
  const issues = [
    { path: "depth", message: "Expected a whole number." },
    { path: "device", message: "Expected a device." },
  ];
  expect(messageOf("bad_request", { issues })).toBe("`depth`: Expected a whole number. The details list 1 more.");
  expect(messageOf("bad_request", { issues: [{ path: "", message: "Expected an object." }] })).toBe(
    "Expected an object.",
  );
});

test("details that a process of another version sent get the message of their code", () => {
  const foreign = [
    { reason: "new_reason" },
    { reason: "constructor" },
    { reason: "window" },
    { reason: { toString: 1 } },
    { issues: "none" },
  ];
  for (const sent of foreign) expect(messageOf("rate_limited", sent)).toBe(errors.rate_limited.message);
  expect(errorText("constructor", { reason: "name" })).toBeUndefined();
});
