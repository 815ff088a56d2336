import { randomBytes } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import {
  correctCredit,
  creditRefusal,
  decideSettlements,
  grantCredit,
  readCredit,
  type SettlementRequest,
  type VersionedBalance,
} from "../../../shared/credits/ledger.ts";
import { confirmDelivered, listUndelivered, reverseCharges } from "../../../shared/credits/deliveries.ts";
import { verifyLedger } from "../../../commands/ledger.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import { newId } from "../../../shared/ids.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { decidePatiently } from "./decide-patiently.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

const priceMils = 5;
const { database, url } = await openFreshDatabase(afterAll);
afterAll(async () => {
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject({ ok: true, violations: [] });
});

const organizationWith = (mils: number) => createPayer(database, mils);

const charge = (organizationId: string, requestId = newId("req"), key?: { hash: string; fingerprint: string }) =>
  chargeOf(organizationId, { requestId, priceMils, key, answer: key && zstdCompressSync("an answer") });
const decideOne = async (ending: SettlementRequest) =>
  (await decideSettlements(database, [ending])).get(ending.requestId);

test("a batch that is sent again in part and in another order decides no search twice", async () => {
  const organizationId = await organizationWith(100);
  const batch = Array.from({ length: 6 }, () => charge(organizationId));
  await decideSettlements(database, batch);
  const again = await decideSettlements(database, [...batch.slice(2).toReversed(), charge(organizationId)]);
  expect([...again.values()].filter(({ isNew }) => isNew)).toHaveLength(1);
  expect((await readCredit(database, organizationId))?.balance).toEqual({
    balanceMils: 100 - 7 * priceMils,
    version: 8,
  });
});

test("batches that race over the same searches and organizations charge each once, without gap or overdraft", async () => {
  const organizations = await Promise.all([1, 2, 3].map(() => organizationWith(20 * priceMils)));
  const searches = organizations.flatMap((id) => Array.from({ length: 30 }, () => charge(id)));
  const shuffled = () => searches.map((search) => ({ search, at: randomBytes(4).readUInt32BE() }));
  const racing = Array.from({ length: 8 }, () => shuffled().toSorted((a, b) => a.at - b.at));
  await Promise.all(
    racing
      .flatMap((order) => [order.slice(0, 45), order.slice(45)])
      .map((half) =>
        decidePatiently(
          database,
          half.map(({ search }) => search),
        ),
      ),
  );
  for (const id of organizations) {
    // 1 grant and 20 charges. The 10 refusals raise no version.
    expect((await readCredit(database, id))?.balance).toEqual({ balanceMils: 0, version: 21 });
  }
});

test("a paid key is free even with an empty balance, and a key without cover makes no other search free", async () => {
  const organizationId = await organizationWith(priceMils);
  const key = { hash: "paid", fingerprint: "q" };
  await decideOne(charge(organizationId, newId("req"), key));
  expect(await decideOne(charge(organizationId, newId("req"), key))).toMatchObject({ reason: "already_paid" });
  const poor = { hash: "poor", fingerprint: "q" };
  const refused = await decideSettlements(
    database,
    [1, 2].map(() => charge(organizationId, newId("req"), poor)),
  );
  expect([...refused.values()].map(({ reason }) => reason)).toEqual(["out_of_credits", "out_of_credits"]);
});

test("an undelivered charge is reversed once, a delivered or keyed one never", async () => {
  const organizationId = await organizationWith(100);
  const [lost, delivered, keyed] = [newId("req"), newId("req"), newId("req")];
  const key = { hash: "k", fingerprint: "q" };
  await decideSettlements(database, [
    charge(organizationId, lost),
    charge(organizationId, delivered),
    charge(organizationId, keyed, key),
  ]);
  await confirmDelivered(database, [delivered]);
  const charges = [lost, delivered, keyed].map((requestId) => ({ organizationId, requestId }));
  const [first, second] = [
    await reverseCharges(database, charges, "undelivered"),
    await reverseCharges(database, charges, "undelivered"),
  ];
  const balance = { balanceMils: 90, version: 5 };
  const before = { balanceMils: 85, version: 4, entryId: expect.any(String) };
  expect(first).toEqual([{ organizationId, requestIds: [lost], mils: priceMils, balance, before }]);
  expect(second).toEqual([{ organizationId, requestIds: [], mils: 0, balance }]);
  expect(await decideOne(charge(organizationId, lost))).toMatchObject({ isNew: false, reversed: true });
  const open = await listUndelivered(database, -60_000, 1_000);
  expect(open.filter((owed) => owed.organizationId === organizationId)).toEqual([]);
});

test("a confirmation and a reversal that race agree on one of them", async () => {
  const organizationId = await organizationWith(500);
  const requests = Array.from({ length: 40 }, () => newId("req"));
  await decideSettlements(
    database,
    requests.map((requestId) => charge(organizationId, requestId)),
  );
  const reversals = await Promise.all(
    requests.map(async (requestId) => {
      const [, reversed] = await Promise.all([
        confirmDelivered(database, [requestId]),
        reverseCharges(database, [{ organizationId, requestId }], "caller_disconnected"),
      ]);
      return reversed[0]?.mils ?? 0;
    }),
  );
  const givenMils = reversals.reduce((sum, mils) => sum + mils, 0);
  expect((await readCredit(database, organizationId))?.balance).toMatchObject({
    balanceMils: 500 - priceMils * 40 + givenMils,
  });
});

test.each(["grant", "correction"] as const)(
  "a %s counts once however often it is sent, also at the same time, and its id belongs to one organization",
  async (kind) => {
    const organizationId = await organizationWith(0);
    const change = { organizationId, grantId: newId(kind), mils: 7, reason: "test" };
    const send = kind === "grant" ? grantCredit : correctCredit;
    const changes = await Promise.all(Array.from({ length: 5 }, () => send(database, change)));
    expect(changes.filter((changed) => changed?.fresh)).toHaveLength(1);
    expect((await readCredit(database, organizationId))?.balance).toEqual({ balanceMils: 7, version: 1 });
    expect(await send(database, { ...change, grantId: newId(kind), organizationId: newId("org") })).toBeUndefined();
    const theirs = { ...change, organizationId: await organizationWith(0) };
    const refused = await send(database, theirs).catch((error: unknown) => creditRefusal(kind, error));
    expect(refused).toBe(`This ${kind} id was used for another organization.`);
  },
);

test("a correction is decided on the balance after a change that is under way", async () => {
  const organizationId = await organizationWith(100);
  await asOwner(url, async (client) => {
    const { rows } = await client.query("select pg_backend_pid() as pid");
    await client.query("begin");
    await client.query("select change_credit('grant', $1, $2, 50, 'test')", [organizationId, newId("grant")]);
    const change = { organizationId, grantId: newId("correction"), mils: -20, reason: "test" };
    const corrected = correctCredit(database, change);
    const waiting = "select from pg_stat_activity where $1 = any(pg_blocking_pids(pid))";
    await eventually(async () => (await database.query(waiting, [rows[0].pid])).rowCount === 1);
    await client.query("commit");
    expect(await corrected).toMatchObject({ fresh: true, balanceMils: 130 });
  });
});

/** Ids differ from run to run. */
const withoutEntry = ({ entryId: _id, ...balance }: VersionedBalance) => balance;

/** Decides a search alone, or beside a search of no organization. */
async function decide(search: SettlementRequest, isAlone: boolean) {
  const beside = { ...search, requestId: newId("req"), organizationId: "org_unknown" };
  const decided = await decideSettlements(database, isAlone ? [search] : [search, beside]);
  const { kind, chargedMils, reason, isNew, reversed, balance, token, stored } = decided.get(search.requestId) ?? {};
  const answer = stored && { of: stored.requestId, text: stored.body.toString() };
  const outcome = { kind, chargedMils, reason, isNew, reversed, answer };
  return { ...outcome, balance: balance && withoutEntry(balance), spent: token?.spending, version: token?.version };
}

/** The decisions on searches of a new organization, one after the other. */
async function decideInTurn(isAlone: boolean) {
  const organizationId = await createPayer(database);
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  const addCredit = (mils: number) =>
    grantCredit(database, { organizationId, grantId: newId("grant"), mils, reason: "test" });
  const end = (requestId = newId("req"), owner = organizationId) =>
    decide(chargeOf(owner, { requestId, tokenId }), isAlone);
  await addCredit(12);
  const first = newId("req");
  const decisions = { charged: await end(first), repeated: await end(first) };
  await reverseCharges(database, [{ organizationId, requestId: first }], "engine_timeout");
  const covered = { reversed: await end(first), second: await end(), third: await end() };
  const uncovered = { short: await end(), unknown: await end(newId("req"), "org_unknown") };
  await addCredit(50);
  await changeLimits(database, "token", tokenId, { dayMils: 16 });
  const ofToken = { within: await end(), beyond: await end() };
  await changeLimits(database, "token", tokenId, { dayMils: null });
  await changeLimits(database, "organization", organizationId, { monthMils: 21 });
  return { ...decisions, ...covered, ...uncovered, ofToken, last: await end(), over: await end() };
}

test("a search that ends alone is decided like one in a batch", async () => {
  const alone = await decideInTurn(true);
  expect(alone).toEqual(await decideInTurn(false));
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
});

test("searches that end alone at the same time charge each once, without gap or overdraft", async () => {
  const organizationId = await createPayer(database, 52);
  const searches = Array.from({ length: 12 }, () => newId("req")).flatMap((requestId) => [requestId, requestId]);
  const decided = await Promise.all(
    searches.map((requestId) => decidePatiently(database, [chargeOf(organizationId, { requestId })])),
  );
  const decisions = decided.flatMap((batch) => [...batch.values()]);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "charge")).toHaveLength(10);
  expect(decisions.filter(({ isNew, kind }) => isNew && kind === "refund")).toHaveLength(2);
});

/** The same for searches under keys. */
async function decideKeyedInTurn(isAlone: boolean) {
  const organizationId = await createPayer(database, 22);
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  const first = newId("req");
  const end = async (hash: string, { requestId = newId("req"), fingerprint = "q", text = "first" } = {}) => {
    const sent = { requestId, tokenId, key: { hash, fingerprint }, answer: await compressAnswer(Buffer.from(text)) };
    const { answer, ...decision } = await decide(chargeOf(organizationId, sent), isAlone);
    return { ...decision, answer: answer?.text, isOfFirst: answer?.of === first };
  };
  const expireKeys = () =>
    asOwner(url, "update answers set expires_at = now() where organization_id = $1", [organizationId]);
  const other = newId("req");
  const decisions = {
    charged: await end("a", { requestId: first }),
    repeated: await end("a", { requestId: first, text: "second" }),
    otherRequest: await end("a", { requestId: other, text: "third" }),
    otherRepeated: await end("a", { requestId: other, text: "third" }),
    otherQuery: await end("a", { fingerprint: "other", text: "fourth" }),
    otherKey: await end("b"),
  };
  await expireKeys();
  const expired = { charged: await end("a", { text: "fifth" }), repeated: await end("a", { text: "sixth" }) };
  await changeLimits(database, "token", tokenId, { dayMils: 20 });
  const ofToken = { within: await end("c"), beyond: await end("d") };
  await changeLimits(database, "token", tokenId, { dayMils: null });
  return { ...decisions, expired, ofToken, short: await end("e") };
}

test("a search under a key that ends alone is decided like one in a batch, and stores its answer", async () => {
  const alone = await decideKeyedInTurn(true);
  expect(alone).toEqual(await decideKeyedInTurn(false));
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
});

test("of searches under one key that end alone at the same time one pays, and all get its answer", async () => {
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
});
