import { zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { beginErasure, eraseRows } from "../../../commands/erasure/erase-organization.ts";
import { confirmDelivered, reverseCharges } from "../../../shared/credits/deliveries.ts";
import {
  clearKeptAnswers,
  KeptAnswers,
  keepAnswers,
  setKeptDays,
  writeFindings,
} from "../../../shared/credits/kept-answers.ts";
import { decideSettlements } from "../../../shared/credits/ledger.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { setSuspended } from "../../../shared/organizations/organizations.ts";
import { rotateDays } from "../../../shared/search-log/search-log.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { type Charge, chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { requestIdAt } from "../../harness/fixtures/request-ids.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { operator } from "../../harness/fixtures/operator.ts";

/** Kept answers in Postgres: who may read one, how many bytes there are, and for how long they stay. */

const { database, url } = await openFreshDatabase(afterAll);
const log = openLog({ name: "test", level: "silent" });
const kept = new KeptAnswers({ database, writing: database, bytesMax: 2 ** 30, metrics: openMetrics(), log });

const dayMs = 86_400_000;
const roomy = 2 ** 30;

async function keeper(days = 30): Promise<string> {
  const organizationId = await createPayer(database, 1_000_000);
  await setKeptDays(database, { actor: operator, organizationId }, days);
  return organizationId;
}

interface Searched {
  organizationId: string;
  requestId: string;
  fetchedAtMs: number;
}

/** A charged search whose answer is kept. */
async function searched(
  organizationId: string,
  given: { agoMs?: number; charge?: Partial<Charge>; bytesMax?: number; padding?: number; delivered?: boolean } = {},
): Promise<Searched> {
  const { agoMs = 0, charge, bytesMax = roomy, padding = 0, delivered = true } = given;
  const fetchedAtMs = Date.now() - agoMs;
  const requestId = requestIdAt(fetchedAtMs);
  await decideSettlements(database, [chargeOf(organizationId, { requestId, ...charge })]);
  if (delivered) await confirmDelivered(database, [requestId]);
  const body = Buffer.concat([
    zstdCompressSync(writeFindings(query(), { totalResultsCount: 7, results: [] })),
    Buffer.alloc(padding),
  ]);
  const answer = { requestId, organizationId, fingerprint: "f", fetchedAtMs, provider: "serper", body };
  await keepAnswers(database, [answer], bytesMax);
  return { organizationId, requestId, fetchedAtMs };
}

const find = (organizationId: string, ageMs = dayMs) =>
  kept.find({ organizationId, fingerprint: "f", sinceMs: Date.now() - ageMs });

const readable = async (organizationId: string) => {
  const text = "select request_id from readable_answers where organization_id = $1 order by at, request_id";
  return (await database.query(text, [organizationId])).rows.map((row) => row.request_id);
};

const bytesOf = async (organizationId: string): Promise<number> =>
  asOwner(url, async (owner) => {
    const of = [organizationId];
    const counted = "select coalesce(sum(bytes), 0)::int as bytes from kept_answer_bytes where organization_id = $1";
    const there =
      "select coalesce(sum(length(body) + 500), 0)::int as bytes from kept_answers where organization_id = $1";
    const { bytes } = (await owner.query(counted, of)).rows[0];
    expect((await owner.query(there, of)).rows[0].bytes).toBe(bytes);
    return bytes;
  });

test("an answer is readable once its charge is final: not before its delivery, nor after a reversal, and under a key at once", async () => {
  const organizationId = await keeper();
  const { requestId } = await searched(organizationId, { delivered: false });
  expect([await find(organizationId), await readable(organizationId)]).toEqual([undefined, []]);
  await confirmDelivered(database, [requestId]);
  expect(await find(organizationId)).toMatchObject({ requestId, totalResultsCount: 7, provider: "serper" });
  expect(await readable(organizationId)).toEqual([requestId]);

  const reversed = await searched(organizationId, { delivered: false });
  await reverseCharges(database, [reversed], "undelivered");
  await confirmDelivered(database, [reversed.requestId]);
  expect(await find(organizationId)).toMatchObject({ requestId });
  const key = { hash: "k", fingerprint: "f" };
  const keyed = await searched(organizationId, { charge: { key, answer: Buffer.from("x") }, delivered: false });
  expect(await find(organizationId)).toMatchObject({ requestId: keyed.requestId });
  expect(await readable(organizationId)).toEqual([requestId, keyed.requestId].toSorted());

  // Without any charge, as after Postgres was restored from the past.
  const uncharged = await keeper();
  await searched(uncharged, { charge: { priceMils: 2_000_000 }, delivered: false });
  expect([await find(uncharged), await readable(uncharged)]).toEqual([undefined, []]);
});

test("readers beside a refund and a delivery see the answer only where the charge stays", async () => {
  const organizationId = await keeper();
  for (let round = 0; round < 15; round += 1) {
    const fetched = await searched(organizationId, { delivered: false });
    const reads: Promise<string | undefined>[] = [];
    const read = () => reads.push(find(organizationId, dayMs + round).then((found) => found?.requestId));
    read();
    const reversing = reverseCharges(database, [fetched], "undelivered");
    const delivering = confirmDelivered(database, [fetched.requestId]);
    read();
    await Promise.all([reversing, delivering]);
    read();
    const { rows } = await database.query("select from ledger_entries where request_id = $1 and kind = 'reversal'", [
      fetched.requestId,
    ]);
    const wasRead = (await Promise.all(reads)).includes(fetched.requestId);
    expect([wasRead, rows.length]).not.toEqual([true, 1]);
  }
});

test("no organization gets the answer of another, nor one that is older than asked or than its payer wants, or of unknown age", async () => {
  const [organizationId, other] = [await keeper(), await keeper()];
  const old = await searched(organizationId, { agoMs: 3 * dayMs });
  expect(await find(other, 90 * dayMs)).toBeUndefined();
  expect(await find(organizationId, 2 * dayMs)).toBeUndefined();
  expect(await find(organizationId, 4 * dayMs)).toMatchObject({ requestId: old.requestId });
  const newer = await searched(organizationId, { agoMs: dayMs });
  expect(await find(organizationId, 4 * dayMs)).toMatchObject({ requestId: newer.requestId });
  await setKeptDays(database, { actor: operator, organizationId }, 2);
  expect(await readable(organizationId)).toEqual([newer.requestId]);
  await setKeptDays(database, { actor: operator, organizationId }, 0);
  expect([await find(organizationId, 4 * dayMs), await readable(organizationId)]).toEqual([undefined, []]);
  // As if it was kept before the clock of Redis was set back by a day.
  await searched(other, { agoMs: -dayMs });
  expect(await find(other)).toBeUndefined();
});

/** Clears page by page. @returns how many pages there were. */
async function clearAll(daysMax: number): Promise<number> {
  for (let [since, pages] = ["", 1]; ; pages += 1) {
    since = await clearKeptAnswers(database, daysMax, { since, countsMax: 3, rowsMax: 1 });
    if (since === "") return pages;
  }
}

test("answers that the payer or the operator does not want any longer are deleted in pages, and those of others stay", async () => {
  const [organizationId, other] = [await keeper(), await keeper()];
  for (const agoMs of [0, 5 * dayMs, 20 * dayMs])
    for (const id of [organizationId, other]) await searched(id, { agoMs });
  const all = await bytesOf(other);
  expect(await clearAll(90)).toBeGreaterThan(1);
  await setKeptDays(database, { actor: operator, organizationId }, 10);
  await clearAll(90);
  expect([await bytesOf(organizationId), await bytesOf(other)]).toEqual([(all / 3) * 2, all]);
  await clearAll(4);
  expect([await bytesOf(organizationId), await bytesOf(other)]).toEqual([all / 3, all / 3]);
  await setKeptDays(database, { actor: operator, organizationId }, 0);
  await clearAll(90);
  expect([await bytesOf(organizationId), await bytesOf(other)]).toEqual([0, all / 3]);
  await searched(organizationId);
  expect(await bytesOf(organizationId)).toBe(0);
});

test("an organization keeps no more bytes than the operator allows: its oldest answers give way, and another's do not", async () => {
  const [organizationId, other] = [await keeper(), await keeper()];
  await searched(other, { agoMs: 9 * dayMs });
  const sizes = { bytesMax: 20_000, padding: 4_000 };
  const ids: string[] = [];
  for (const days of [6, 5, 4, 3, 2, 1])
    ids.push((await searched(organizationId, { agoMs: days * dayMs, ...sizes })).requestId);
  expect(await bytesOf(organizationId)).toBeLessThanOrEqual(20_000);
  expect(await readable(organizationId)).toEqual(ids.slice(-4));
  // One that does not fit alone is not kept.
  await searched(organizationId, { ...sizes, padding: 30_000 });
  expect(await bytesOf(organizationId)).toBeLessThanOrEqual(20_000);
  expect(await bytesOf(other)).toBeGreaterThan(0);
});

test("processes read no answer past the charge, and an erased organization has none, also of one that is being kept", async () => {
  for (const refused of [
    "select from kept_answers",
    "delete from kept_answers",
    "select drop_kept_answers('o', now()::date, 1)",
  ])
    await expect(database.query(refused)).rejects.toThrow("permission denied");
  const organizationId = await keeper();
  await searched(organizationId);
  await searched(organizationId, { agoMs: 2 * dayMs });
  await setSuspended(database, organizationId, true);
  await beginErasure(database, { kind: "service", name: "test" }, organizationId);
  expect(await eraseRows(database, organizationId, { rowsMax: 1 })).toMatchObject({ answers: 2 });
  const late = { requestId: newId("req"), organizationId, fingerprint: "f", fetchedAtMs: Date.now(), provider: "p" };
  expect(await keepAnswers(database, [{ ...late, body: Buffer.from("x") }], roomy)).toBe(0);
  expect(await bytesOf(organizationId)).toBe(0);
});

test("each day has a partition of its own, which is dropped after the operator's days; with 0 there is none", async () => {
  const organizationId = await keeper();
  const { requestId } = await searched(organizationId);
  const partitions = async () =>
    (await database.query("select relname from pg_class where relispartition and relname ~ '^kept_answers_\\d{8}$'"))
      .rows.length;
  await eventually(async () => {
    await rotateDays(database, 30, "kept_answers");
    return (await partitions()) === 8;
  });
  expect(await find(organizationId)).toMatchObject({ requestId });
  await eventually(async () => {
    await rotateDays(database, 0, "kept_answers");
    return (await partitions()) === 0;
  });
  await clearAll(0);
  expect(await bytesOf(organizationId)).toBe(0);
});
