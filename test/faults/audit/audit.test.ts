import { describe, expect, test } from "vitest";
import type { Account } from "./accounts.ts";
import { audit, totalsOf } from "./audit.ts";
import { type Attempt, type AuditedApi, type Evidence, priceMils, statusesIn } from "./evidence.ts";

/** The evidence of one answered and charged search. Each test changes one part of it. */

const organizationId = "org_1";
const keyword = "pumps";

const answerOf = (requestId: string, creditsCharged = priceMils, of = keyword) => ({
  status: 200,
  requestId,
  text: JSON.stringify({ requestId, creditsCharged, query: { keyword: of } }),
  replayed: false,
});
const attempt: Attempt = {
  organizationId,
  tokenId: "tok_1",
  keyword,
  key: undefined,
  priceMils,
  api: 0,
  sentAtMs: 1_000,
  endedAtMs: 1_100,
  answer: answerOf("r1"),
};
const account: Account = {
  organizationId,
  decided: "charge",
  decidedAtMs: 50,
  reason: null,
  mils: -priceMils,
  reversedFor: undefined,
  keyed: false,
};
const api: AuditedApi = { killedAtMs: [], unreachable: [], statuses: new Map() };

function evidence(changed: {
  attempts?: Attempt[];
  accounts?: Record<string, Account>;
  paidKeyHashes?: string[];
  apis?: AuditedApi;
  answeredAtMs?: number;
}): Evidence {
  const { attempts = [attempt], accounts = { r1: account }, paidKeyHashes = [], answeredAtMs = 40 } = changed;
  return {
    accounts: { byRequest: new Map(Object.entries(accounts)), paidKeyHashes },
    attempts,
    apis: [changed.apis ?? api, api],
    providerCalls: [{ keyword, answeredAtMs }],
    answerMsMax: 500,
  };
}

const { answer: _, ...unanswered } = attempt;
const failed: Attempt = { ...attempt, answer: { ...answerOf("r1"), status: 504 } };
const longer: Attempt = { ...attempt, answer: { ...answerOf("r1"), text: `${answerOf("r1").text} ` } };
const keyed = (requestId = "r1", creditsCharged = priceMils): Attempt => ({
  ...attempt,
  key: "k",
  answer: answerOf(requestId, creditsCharged),
});
const reversed: Account = { ...account, reversedFor: "undelivered" };
const repeated: Account = { ...account, decided: "refund", reason: "already_paid" };
const paid: Account = { ...account, keyed: true };
const [ofKey, twice] = [
  { attempts: [keyed()], accounts: { r1: paid } },
  { r1: paid, r2: paid },
];

test("a search that was answered and charged once breaks no promise", () => {
  expect(audit(evidence({}))).toEqual([]);
  expect(totalsOf(evidence({}))).toEqual({ charged: 1, refunded: 0, reversed: 0, inDoubt: 0, unpaidPages: 0 });
});

describe("the auditor reports", () => {
  test.each<[string, Parameters<typeof evidence>[0], RegExp]>([
    ["an answer without a charge", { accounts: {} }, /has no deciding entry/],
    ["an answer to another query", { attempts: [{ ...attempt, answer: answerOf("r1", 5, "other") }] }, /another query/],
    ["an answer that says another price", { attempts: [{ ...attempt, answer: answerOf("r1", 0) }] }, /says 0 mils/],
    ["an answer at the price of one page", { attempts: [{ ...attempt, priceMils: 50 }] }, /says 5 mils/],
    ["a late answer", { attempts: [{ ...attempt, endedAtMs: 1_600 }] }, /after 600 ms/],
    ["a charged error", { attempts: [failed] }, /was answered 504 and is charged/],
    ["a charge without an answer", { attempts: [{ ...unanswered, noAnswer: "broken" }] }, /1 charges for 0 callers/],
    ["a charge before the provider's answer", { answeredAtMs: 90 }, /charged before the provider/],
    ["a reversal without a killed API", { accounts: { r1: reversed } }, /its API was not killed/],
    ["a key that paid for nothing", { paidKeyHashes: ["abc"] }, /no caller has its answer/],
    ["two answers of one request", { attempts: [attempt, longer] }, /r1 has two different answers/],
    ["two answers under one key", { attempts: [keyed(), keyed("r2")] }, /the key k of org_1 has two different answers/],
    ["a search under a key that has paid", { attempts: [keyed("r1", 0)], accounts: { r1: repeated } }, /was refunded/],
    ["a call for what a key has paid", { ...ofKey, answeredAtMs: 30_000 }, /the provider was asked again/],
    ["a key that was charged twice", { attempts: [keyed(), keyed("r2")], accounts: twice }, /charged 2 times/],
  ])("%s", (_title, changed, sentence) => {
    expect(audit(evidence(changed)).join("\n")).toMatch(sentence);
  });
});

test("an answer whose API was killed before its confirmation is in doubt, and the caller keeps the mils", () => {
  const doubtful = evidence({ accounts: { r1: reversed }, apis: { ...api, killedAtMs: [1_150] } });
  expect(audit(doubtful)).toEqual([]);
  expect(totalsOf(doubtful)).toMatchObject({ charged: 0, reversed: 1, inDoubt: 1 });
});

test("a caller that disconnected may be charged for an answer that its API had sent", () => {
  const statuses = statusesIn([{ msg: "request", requestId: "r1", status: 200 }]);
  const attempts: Attempt[] = [{ ...unanswered, noAnswer: "disconnected" }];
  expect(audit(evidence({ attempts, apis: { ...api, statuses } }))).toEqual([]);
});
