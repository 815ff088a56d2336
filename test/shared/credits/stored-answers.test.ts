import { afterAll, expect, test } from "vitest";
import { decideSettlements, type Decision, type SettlementRequest } from "../../../shared/credits/ledger.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import {
  clearOldAnswers,
  nameOfKey,
  type OwnedKey,
  readPaidKeys,
  readStoredAnswers,
} from "../../../shared/credits/stored-answers.ts";
import { newId } from "../../../shared/ids.ts";
import { generatePage } from "../../../worker/providers/sandbox/sandbox.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

const priceMils = 5;
const { database, url } = await openFreshDatabase(afterAll);

const organization = (creditMils = 100) => createPayer(database, creditMils);

async function charge(organizationId: string, text: string, hash = "k", fingerprint = "q"): Promise<SettlementRequest> {
  const answer = await compressAnswer(Buffer.from(text));
  return chargeOf(organizationId, { key: { hash, fingerprint }, priceMils, answer });
}

async function decide(...requests: SettlementRequest[]): Promise<Decision[]> {
  const decisions = await decideSettlements(database, requests);
  return requests.flatMap(({ requestId }) => decisions.get(requestId) ?? []);
}

async function answerUnder(organizationId: string, hash = "k") {
  const owned: OwnedKey = { organizationId, hash };
  const found = await (await readStoredAnswers(database, [owned])).get(nameOfKey(owned));
  return found && { requestId: found.requestId, text: found.body.toString() };
}

test("a charge under a key stores its answer, byte for byte, and says nothing of it", async () => {
  const organizationId = await organization();
  const text = JSON.stringify({ results: "ü 😀 ".repeat(20_000) });
  const first = await charge(organizationId, text);
  const [decision] = await decide(first);
  expect(decision).toMatchObject({ kind: "charge", isNew: true });
  expect(decision).not.toHaveProperty("stored");
  expect(await answerUnder(organizationId)).toEqual({ requestId: first.requestId, text });
});

test("an answer that is damaged fails no other one that is read with it", async () => {
  const [damaged, whole] = [await organization(), await organization()];
  await decide(await charge(damaged, "damaged"), await charge(whole, "whole"));
  await asOwner(url, "update answers set body = 'no answer' where organization_id = $1", [damaged]);
  const keys = [damaged, whole].map((organizationId) => ({ organizationId, hash: "k" }));
  const found = await readStoredAnswers(database, keys);
  const read = await Promise.allSettled(keys.map(async (key) => found.get(nameOfKey(key))));
  expect(read).toMatchObject([{ status: "rejected" }, { value: { body: Buffer.from("whole") } }]);
});

test("of two searches under one key in one batch, the second gets the answer of the first", async () => {
  const organizationId = await organization();
  const [first, second] = [await charge(organizationId, "first"), await charge(organizationId, "second")];
  const [, followed] = await decide(first, second);
  expect(followed).toMatchObject({
    reason: "already_paid",
    stored: { requestId: first.requestId, body: Buffer.from("first") },
  });
});

test("a search that is not charged stores nothing", async () => {
  const organizationId = await organization(priceMils);
  await decide(await charge(organizationId, "paid"));
  expect(await decide(await charge(organizationId, "not covered", "other"))).toMatchObject([
    { reason: "out_of_credits" },
  ]);
  expect(await answerUnder(organizationId, "other")).toBeUndefined();
});

test.each([1, 2])(
  "searches that end after their organization was erased are not charged, and store nothing (%i at once)",
  async (searches) => {
    const organizationId = await organization();
    await asOwner(url, "update organizations set erased_at = now() where id = $1", [organizationId]);
    const requests = Array.from({ length: searches }, (_, n) => charge(organizationId, "late", `k${n}`));
    const decisions = await decide(...(await Promise.all(requests)));
    expect(decisions).toMatchObject(requests.map(() => ({ kind: "refund", reason: "out_of_credits" })));
    expect(decisions.at(-1)?.balance.balanceMils).toBe(100);
    expect(await answerUnder(organizationId, "k0")).toBeUndefined();
  },
);

test("payment and answer under a key end at the same moment, and the next charge under it brings another answer", async () => {
  const organizationId = await organization();
  await decide(await charge(organizationId, "first"));
  await asOwner(url, "update answers set expires_at = now() where organization_id = $1", [organizationId]);
  expect(await answerUnder(organizationId)).toBeUndefined();
  expect(await decide(await charge(organizationId, "next"))).toMatchObject([{ kind: "charge" }]);
  expect(await answerUnder(organizationId)).toMatchObject({ text: "next" });
});

/** Lets the day of answers begin at this time, for all transactions, while `act` runs. */
const inDayFrom = async <T>(time: string, act: () => Promise<T>): Promise<T> => {
  const before = await asOwner(url, "select pg_get_functiondef('answer_slot'::regproc)");
  await asOwner(url, async (client) => {
    const { rows } = await client.query(`select extract(epoch from ${time})::text as begins`);
    await client.query(`create or replace function answer_slot(charged_at timestamptz) returns smallint language sql stable as $$
      select ((floor((extract(epoch from charged_at) - ${rows[0].begins}) / 86400)::bigint + 4) % 4)::smallint $$`);
  });
  try {
    return await act();
  } finally {
    await asOwner(url, before.rows[0].pg_get_functiondef);
  }
};

test.each([0, 1])(
  "a key is not charged again by a transaction that began before midnight and waited for one that began after it (%i beside it)",
  async (others) => {
    const organizationId = await organization();
    const first = await charge(organizationId, "first");
    await inDayFrom("now() - interval '1 hour'", () => decide(first));
    // For the next transaction midnight is yet to come.
    const beside = Array.from({ length: others }, () => charge(organizationId, "other", "other"));
    const requests = [await charge(organizationId, "second"), ...(await Promise.all(beside))];
    const [waited] = await inDayFrom("now() + interval '30 seconds'", () => decide(...requests));
    const stored = { requestId: first.requestId, body: Buffer.from("first") };
    expect(waited).toMatchObject({ kind: "refund", reason: "already_paid", stored });
  },
);

/** Moves what an organization stored today under these keys to the slots so many days later. */
const moveSlots = (organizationId: string, days: Record<string, number>) =>
  asOwner(url, async (client) => {
    for (const [hash, later] of Object.entries(days))
      await client.query("update answers set slot = (slot + 4 + $3) % 4 where organization_id = $1 and key_hash = $2", [
        organizationId,
        hash,
        later,
      ]);
  });

const keysLeft = async (organizationId: string) => {
  const { rows } = await database.query("select key_hash from answers where organization_id = $1 order by 1", [
    organizationId,
  ]);
  return rows.map(({ key_hash: hash }) => String(hash));
};

test("answers and keys are emptied by the day, two days after their charge and no day earlier, also after a day without maintenance", async () => {
  const organizationId = await organization();
  await inDayFrom("now() - interval '12 hours'", async () => {
    for (const hash of ["a", "b", "c", "d"]) await decide(await charge(organizationId, hash, hash));
    await moveSlots(organizationId, { b: -1, c: -2, d: -3 });
    expect(await clearOldAnswers(database)).toBe(true);
    expect(await keysLeft(organizationId)).toEqual(["a", "b"]);
    const owned = ["a", "b", "c", "d"].map((hash) => ({ organizationId, hash }));
    expect([...(await readPaidKeys(database, owned)).keys()].toSorted()).toEqual(owned.slice(0, 2).map(nameOfKey));
    expect(await clearOldAnswers(database)).toBe(false);
  });
});

test("in the hour before midnight the table of tomorrow is left to the transactions that begin at midnight", async () => {
  const organizationId = await organization();
  await inDayFrom("now() + interval '59 minutes'", async () => {
    await decide(await charge(organizationId, "tomorrow", "t"));
    await moveSlots(organizationId, { t: 1 });
    await clearOldAnswers(database);
    expect(await keysLeft(organizationId)).toEqual(["t"]);
  });
});

/** A time zone, as POSIX writes it, whose clock went forward 20 hours ago: there a day has 23 hours. */
function zoneOfShortDay(): string {
  const changed = new Date(Date.now() - 20 * 3_600_000);
  const dayOfYear = Math.floor((changed.getTime() - Date.UTC(changed.getUTCFullYear())) / 86_400_000);
  return `AAA0BBB,${dayOfYear}/${changed.getUTCHours()},${(dayOfYear + 100) % 365}/0`;
}

test("where the clock of the session's time zone changed, an answer is owed for 24 hours all the same", async () => {
  const organizationId = await organization();
  await inDayFrom("now() - interval '23 hours 30 minutes'", async () => {
    await decide(await charge(organizationId, "of yesterday"));
    await moveSlots(organizationId, { k: -1 });
    const found = await asOwner(url, async (client) => {
      await client.query(`set timezone to '${zoneOfShortDay()}'`);
      const { rows } = await client.query(
        "select clear_old_answers(), now() - (now() - interval '1 day') < interval '24 hours' as is_short",
      );
      const paid = await client.query("select key_hash from key_payments where organization_id = $1", [organizationId]);
      return { ...rows[0], paid: paid.rows };
    });
    expect(found).toMatchObject({ is_short: true, paid: [{ key_hash: "k" }] });
  });
});

test("emptying does not wait for a transaction that reads", async () => {
  const organizationId = await organization();
  await decide(await charge(organizationId, "old"));
  await moveSlots(organizationId, { k: -2 });
  const reader = await database.connect();
  try {
    await reader.query("begin");
    await reader.query("select count(*) from answers");
    expect(await clearOldAnswers(database)).toBe(false);
  } finally {
    await reader.query("rollback");
    reader.release();
  }
  expect(await clearOldAnswers(database)).toBe(true);
});

test.each([
  { pages: 1, kilobytesMax: 3 },
  { pages: 10, kilobytesMax: 9 },
])("an answer of $pages pages takes at most $kilobytesMax kB of disk, its index included", async (size) => {
  const answers = 500;
  const bodies = await Promise.all(
    Array.from({ length: answers }, (_, n) => sandboxAnswer(`keyword ${n}`, size.pages)),
  );
  const bytes = await asOwner(url, async (client) => {
    await client.query("truncate answers");
    await client.query(
      `insert into answers (slot, organization_id, key_hash, request_id, fingerprint, body, expires_at)
       select 0, $2, encode(sha256(convert_to(n::text, 'utf8')), 'hex'), $3, encode(sha256(body), 'hex'), body, now()
       from unnest($1::bytea[]) with ordinality as b (body, n)`,
      [bodies, newId("org"), newId("req")],
    );
    const { rows } = await client.query("select pg_total_relation_size('answers_0')::int as bytes");
    return Number(rows[0]?.bytes);
  });
  expect(bytes / answers / 1_000).toBeLessThanOrEqual(size.kilobytesMax);
});

function sandboxAnswer(keyword: string, pages: number): Promise<Buffer> {
  const results = Array.from({ length: pages }, (_, at) =>
    generatePage({ keyword, variant: "desktop", pageNumber: at + 1 }),
  );
  return compressAnswer(Buffer.from(JSON.stringify(results)));
}
