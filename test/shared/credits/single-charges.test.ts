import { expect, test } from "vitest";
import { reverseCharges } from "../../../shared/credits/deliveries.ts";
import {
  decideSettlements,
  grantCredit,
  type SettlementRequest,
  type VersionedBalance,
} from "../../../shared/credits/ledger.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import { verifyLedger } from "../../../commands/ledger.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { decidePatiently } from "./decide-patiently.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

/** Ids differ from run to run. */
const withoutEntry = ({ entryId: _id, ...balance }: VersionedBalance) => balance;

/** Decides a search alone, or beside a search of no organization. */
async function decide(database: Database, search: SettlementRequest, isAlone: boolean) {
  const beside = { ...search, requestId: newId("req"), organizationId: "org_unknown" };
  const decided = await decideSettlements(database, isAlone ? [search] : [search, beside]);
  const { kind, chargedMils, reason, isNew, reversed, balance, token, stored } = decided.get(search.requestId) ?? {};
  const answer = stored && { of: stored.requestId, text: stored.body.toString() };
  const outcome = { kind, chargedMils, reason, isNew, reversed, answer };
  return { ...outcome, balance: balance && withoutEntry(balance), spent: token?.spending, version: token?.version };
}

/** The decisions on searches of a new organization, one after the other. */
async function decideInTurn(database: Database, isAlone: boolean) {
  const organizationId = await createPayer(database);
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  const addCredit = (mils: number) =>
    grantCredit(database, { organizationId, grantId: newId("grant"), mils, reason: "test" });
  const charge = (requestId = newId("req"), owner = organizationId) =>
    decide(database, chargeOf(owner, { requestId, tokenId }), isAlone);
  await addCredit(12);
  const first = newId("req");
  const decisions = { charged: await charge(first), repeated: await charge(first) };
  await reverseCharges(database, [{ organizationId, requestId: first }], "engine_timeout");
  const covered = { reversed: await charge(first), second: await charge(), third: await charge() };
  const uncovered = { short: await charge(), unknown: await charge(newId("req"), "org_unknown") };
  await addCredit(50);
  await changeLimits(database, "token", tokenId, { dayMils: 16 });
  const ofToken = { within: await charge(), beyond: await charge() };
  await changeLimits(database, "token", tokenId, { dayMils: null });
  await changeLimits(database, "organization", organizationId, { monthMils: 21 });
  return { ...decisions, ...covered, ...uncovered, ofToken, last: await charge(), over: await charge() };
}

test("a search that ends alone is decided like one in a batch", async () => {
  const { database, close } = await openFreshDatabase();
  const alone = await decideInTurn(database, true);
  expect(alone).toEqual(await decideInTurn(database, false));
  expect(alone).toMatchObject({
    charged: { kind: "charge", chargedMils: 5, isNew: true, balance: { balanceMils: 7, version: 2 } },
    repeated: { kind: "charge", isNew: false, reversed: false },
    reversed: { kind: "charge", isNew: false, reversed: true },
    third: { kind: "charge", balance: { balanceMils: 2 } },
    short: { kind: "refund", reason: "out_of_credits", chargedMils: 0 },
    unknown: { kind: undefined },
    ofToken: { within: { kind: "charge" }, beyond: { kind: "refund", reason: "token_daily_limit" } },
    last: { kind: "charge" },
    over: { kind: "refund", reason: "monthly_limit" },
  });
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  await close();
});

test("searches that end alone at the same time charge each once, without gap or overdraft", async () => {
  const { database, close } = await openFreshDatabase();
  const organizationId = await createPayer(database, 52);
  const searches = Array.from({ length: 12 }, () => newId("req")).flatMap((requestId) => [requestId, requestId]);
  const decided = await Promise.all(
    searches.map((requestId) => decidePatiently(database, [chargeOf(organizationId, { requestId })])),
  );
  const decisions = decided.flatMap((batch) => [...batch.values()]);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "charge")).toHaveLength(10);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "refund")).toHaveLength(2);
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  await close();
});

/** The same for searches under keys; `url` is the database's. */
async function decideKeyedInTurn({ database, url }: { database: Database; url: string }, isAlone: boolean) {
  const organizationId = await createPayer(database, 22);
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  const first = newId("req");
  const charge = async (hash: string, { requestId = newId("req"), fingerprint = "q", text = "first" } = {}) => {
    const sent = { requestId, tokenId, key: { hash, fingerprint }, answer: await compressAnswer(Buffer.from(text)) };
    const { answer, ...decision } = await decide(database, chargeOf(organizationId, sent), isAlone);
    return { ...decision, answer: answer?.text, isOfFirst: answer?.of === first };
  };
  const expireKeys = () =>
    asOwner(url, (client) =>
      client.query("update answers set expires_at = now() where organization_id = $1", [organizationId]),
    );
  const other = newId("req");
  const decisions = {
    charged: await charge("a", { requestId: first }),
    repeated: await charge("a", { requestId: first, text: "second" }),
    otherRequest: await charge("a", { requestId: other, text: "third" }),
    otherRepeated: await charge("a", { requestId: other, text: "third" }),
    otherQuery: await charge("a", { fingerprint: "other", text: "fourth" }),
    otherKey: await charge("b"),
  };
  await expireKeys();
  const expired = { charged: await charge("a", { text: "fifth" }), repeated: await charge("a", { text: "sixth" }) };
  await changeLimits(database, "token", tokenId, { dayMils: 20 });
  const ofToken = { within: await charge("c"), beyond: await charge("d") };
  await changeLimits(database, "token", tokenId, { dayMils: null });
  return { ...decisions, expired, ofToken, short: await charge("e") };
}

test("a search under a key that ends alone is decided like one in a batch, and stores its answer", async () => {
  const { database, url, close } = await openFreshDatabase();
  const alone = await decideKeyedInTurn({ database, url }, true);
  expect(alone).toEqual(await decideKeyedInTurn({ database, url }, false));
  expect(alone).toMatchObject({
    charged: { kind: "charge", chargedMils: 5, isNew: true, answer: undefined },
    repeated: { kind: "charge", isNew: false, answer: "first", isOfFirst: true },
    otherRequest: { kind: "refund", reason: "already_paid", isNew: true, answer: "first", isOfFirst: true },
    otherRepeated: { kind: "refund", reason: "already_paid", isNew: false, answer: "first", isOfFirst: true },
    otherQuery: { kind: "refund", reason: "idempotency_key_reused", answer: undefined },
    otherKey: { kind: "charge", isNew: true },
    expired: { charged: { kind: "charge", isNew: true }, repeated: { reason: "already_paid", answer: "fifth" } },
    ofToken: { within: { kind: "charge" }, beyond: { kind: "refund", reason: "token_daily_limit" } },
    short: { kind: "refund", reason: "out_of_credits" },
  });
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  await close();
});

test("of searches under one key that end alone at the same time one pays, and all get its answer", async () => {
  const { database, close } = await openFreshDatabase();
  const organizationId = await createPayer(database, 1000);
  const ended = await Promise.all(
    Array.from({ length: 24 }, async (_, at) => {
      const answer = await compressAnswer(Buffer.from(`answer ${at}`));
      const key = { hash: `key ${at % 6}`, fingerprint: "q" };
      const search = chargeOf(organizationId, { key, answer });
      const decided = await decidePatiently(database, [search]);
      const decision = decided.get(search.requestId);
      return {
        hash: key.hash,
        isCharge: decision?.kind === "charge",
        answer: decision?.stored?.body.toString() ?? `answer ${at}`,
      };
    }),
  );
  for (const [, ofKey] of Map.groupBy(ended, ({ hash }) => hash)) {
    expect(ofKey.filter(({ isCharge }) => isCharge)).toHaveLength(1);
    expect(new Set(ofKey.map(({ answer }) => answer)).size).toBe(1);
  }
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
  await close();
});
