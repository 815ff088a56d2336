import { describe, expect, test } from "vitest";
import type { Attempt } from "./evidence.ts";
import { auditSpending } from "./spending.ts";
import type { LimitsInForce, SpendingEntry, SpendingEvidence } from "./spending-evidence.ts";

/** The evidence of two charged searches at a limit for two, and of a third that it refused. Each test changes one part of it. */

const organizationId = "org_1";
const tokenId = "tok_1";
const atMs = 5_000_000;

const entry: SpendingEntry = {
  organizationId,
  version: 2,
  requestId: "r1",
  kind: "charge",
  mils: -5,
  tokenId,
  reason: null,
  createdAtMs: performance.timeOrigin + atMs,
};
const second = { ...entry, version: 3 };
const third = { ...entry, version: 4 };
const limit: LimitsInForce = {
  organizationId,
  ownerId: organizationId,
  day: 10,
  month: null,
  fromVersion: 2,
  toVersion: Number.POSITIVE_INFINITY,
  replacedAtMs: Number.POSITIVE_INFINITY,
};
const ofToken: LimitsInForce = { ...limit, ownerId: tokenId, day: null, month: 10 };

const answered = (status: number, details: object): Attempt => ({
  organizationId,
  tokenId,
  keyword: "pumps",
  key: undefined,
  priceMils: 5,
  api: 0,
  sentAtMs: atMs,
  endedAtMs: atMs + 100,
  answer: { status, requestId: "r3", text: JSON.stringify({ error: { details } }), replayed: false },
});
const refused = answered(402, { reason: "daily_limit", period: "day", limitMils: 10 });
/** The end of the third search, if it had run. */
const refusal = (reason: string): SpendingEntry => ({
  ...entry,
  version: 4,
  requestId: "r3",
  kind: "refund",
  mils: 0,
  reason,
});

const broken = (changed: Partial<SpendingEvidence>) =>
  auditSpending({
    entries: [entry, second],
    limits: [limit, ofToken],
    searchTokenIds: new Set([tokenId]),
    attempts: [refused],
    ...changed,
  }).join("\n");

test("a limit that admits what it allows, refuses the next search and deducts reversals breaks no promise", () => {
  expect(broken({})).toBe("");
  expect(broken({ entries: [entry, second, refusal("daily_limit")] })).toBe("");
  const givenBack: SpendingEntry = { ...entry, version: 4, kind: "reversal", mils: 5 };
  expect(broken({ entries: [entry, second, givenBack, { ...entry, version: 5 }] })).toBe("");
});

test("a limit that is lowered while a search runs may refuse that search at its end without naming a limit", () => {
  const lowered = { ...limit, day: 10, fromVersion: 3 };
  const limits = [{ ...limit, day: 15, toVersion: 3 }, lowered];
  const entries = [entry, second, refusal("daily_limit")];
  const unnamed = answered(402, { reason: "daily_limit", period: "day" });
  expect(broken({ entries, limits, attempts: [unnamed] })).toBe("");
  expect(broken({ entries, attempts: [unnamed] })).toMatch(/without its limit, which had not changed/);
});

test("a search that began under a larger limit is charged by it, also as the first of its organization", () => {
  const larger = { ...ofToken, month: null, toVersion: 1 };
  const limits = (replacedMsBefore: number) => [
    { ...larger, replacedAtMs: entry.createdAtMs - replacedMsBefore },
    { ...ofToken, month: 5 },
  ];
  expect(broken({ limits: limits(1_000), attempts: [] })).toBe("");
  expect(broken({ limits: limits(31_000), attempts: [] })).toMatch(/tok_1 spent 10 mils of 5 in its month/);
});

test("charges of another day and another month do not count together", () => {
  const later = { ...entry, version: 4, createdAtMs: entry.createdAtMs + 40 * 86_400_000 };
  expect(broken({ entries: [entry, second, later] })).toBe("");
});

test("a charge that may have come before or after a change of its limit may reach the larger limit", () => {
  const raised = { ...limit, day: 15, fromVersion: 4 };
  const before = { ...limit, toVersion: 4 };
  const entries = [entry, second, third];
  expect(broken({ entries, limits: [before, raised] })).toBe("");
  expect(broken({ entries, limits: [before, { ...raised, fromVersion: 5 }] })).toMatch(/spent 15 mils of 10/);
});

describe("the auditor reports", () => {
  const refusedAtEnd = [entry, second, refusal("daily_limit")];
  const lowered = { ...limit, fromVersion: 3 };
  const of16 = answered(402, { reason: "daily_limit", period: "day", limitMils: 16 });
  const others = new Set(["tok_2"]);

  test.each<[string, Partial<SpendingEvidence>, RegExp]>([
    ["a charge beyond a limit", { entries: [entry, second, third] }, /org_1 spent 15 mils of 10 in its day/],
    [
      "one beyond a token's",
      { limits: [{ ...ofToken, month: 9 }], attempts: [] },
      /tok_1 spent 10 mils of 9 in its month/,
    ],
    ["a refund without reason", { entries: [entry, refusal("monthly_limit")], attempts: [] }, /no limit was reached/],
    [
      "a 402 at the end of a search for a limit that was set later",
      {
        entries: refusedAtEnd,
        limits: [
          { ...limit, day: 9 },
          { ...limit, fromVersion: 5 },
        ],
      },
      /had no limit of 10 mils by then/,
    ],
    [
      "a 402 at the end of a search for a limit that does not explain it",
      { entries: refusedAtEnd, limits: [{ ...limit, day: 16, toVersion: 3 }, lowered], attempts: [of16] },
      /16 mils, and 15 were spent and asked/,
    ],
    ["a 402 below a limit", { entries: [entry] }, /10 mils, and at most 10 were spent, held and asked/],
    ["a 402 for a limit that never was", { limits: [{ ...limit, day: 15 }] }, /never had a limit of 10/],
    [
      "a charge by a token that may not search",
      { searchTokenIds: others, attempts: [] },
      /charges tok_1, which may not/,
    ],
    ["a 402 to such a token", { searchTokenIds: others, entries: [] }, /402 to a token that may not/],
    ["a 401 to another", { attempts: [answered(401, { reason: "scope" })] }, /401 to a token that may search/],
  ])("%s", (_title, changed, sentence) => {
    expect(broken(changed)).toMatch(sentence);
  });
});
