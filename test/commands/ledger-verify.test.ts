import type { Client } from "pg";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { verifyLedger } from "../../commands/ledger.ts";
import { holdIndexKey, keysOf } from "../../shared/credits/redis-keys.ts";
import { readLine } from "../harness/clients/admin.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { Operator } from "../harness/processes/operator.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { type Organization, Service } from "../harness/processes/service.ts";

/** `ledger verify` finds every broken invariant. Each test case breaks one in its own organization and bypasses all constraints. */

const service = await Service.start({ end: afterAll });
const operator = new Operator(service);

/**
 * The statements run as the owner, with `$1` the organization and `$2` its search. The violation names the search, or the
 * organization. Under an Idempotency-Key, the search that is paid for belongs to the key.
 */
type Damage = [rule: string, title: string, statements: string[], options?: { subject?: "organization"; keyed?: true }];
const ofOrganization = { subject: "organization" } as const;

const sums = "a balance is the sum of its organization's ledger entries";
const gapless = "versions run from 1 without a gap";
const running = "each entry's balance is the one before it plus its amount, and never below 0";
const once = "a search has at most one charge and one reversal";
const decidedOnce = "a search is charged or refunded, not both";
const refundsCounted = "the counts of searches not charged equal the refunds";
const reversals = "a reversal gives back exactly one charge of the same organization";
const late = "a reversal on a later day than its charge is on record, and no other is";
const lowering = "only a charge or a correction lowers a balance";
const unconfirmed = "an unconfirmed charge is recent and not reversed";
const keyPaid = "a paid key has a charge that was not reversed";
const heldSums = "the held sum is the sum of the open holds";
const overdue = "no hold is open after its deadline and the grace period";
const indexed = "the index has exactly the open holds, each with its deadline";
const copies = "a balance in Redis equals Postgres' balance of that version";

const balance = "update organizations set balance_mils = balance_mils";
const entry = "insert into ledger_entries (organization_id, request_id, version, kind, amount_mils, balance_after_mils";

const ofSearch = "where organization_id = $1 and request_id = $2";
const lowered = `${balance} - 5, version = 3 where id = $1 and $2 <> ''`;
const counted = "insert into refund_counts values ($1, date_trunc('hour', now(), 'UTC'), '', 'swept', 1, $2)";

/** The search is given back so much, and the balance follows. */
const givenBack = (mils = 5) => [
  `${entry}, reason) values ($1, $2, 3, 'reversal', ${mils}, ${95 + mils}, 'undelivered')`,
  `${balance} + ${mils}, version = 3 where id = $1 and $2 <> ''`,
];

const damages: Damage[] = [
  [sums, "a balance that was changed by hand", [`${balance} + 1 where id = $1 and $2 <> ''`], ofOrganization],
  [gapless, "an entry that was removed", [`delete from ledger_entries ${ofSearch}`], ofOrganization],
  [
    running,
    "an entry whose balance does not follow from the one before",
    [`update ledger_entries set balance_after_mils = balance_after_mils + 1 ${ofSearch}`],
    ofOrganization,
  ],
  [once, "a search that was charged twice", [`${entry}) values ($1, $2, 3, 'charge', -5, 90)`, lowered]],
  [keyPaid, "a charge under a key that was given back all the same", givenBack(), { keyed: true }],
  [reversals, "a reversal of more than was charged", givenBack(50)],
  [
    late,
    "a reversal that is said to be of another day",
    [
      ...givenBack(),
      "insert into late_reversals (organization_id, version, charge_version, mils) select $1, 3, 2, 5 where $2 <> ''",
    ],
  ],
  [
    late,
    "a reversal after midnight of a charge just before it, without a record of that",
    [
      "update ledger_entries set created_at = date_trunc('day', now(), 'UTC') - interval '1 ms' where organization_id = $1 and $2 <> ''",
      ...givenBack(),
    ],
  ],
  [
    decidedOnce,
    "a charge of a search that was refunded",
    ["insert into refunds (organization_id, request_id, version, reason) values ($1, $2, 2, 'swept')", counted],
  ],
  [refundsCounted, "a search that is counted as not charged, without a refund", [counted], ofOrganization],
  [
    lowering,
    "a grant that takes mils",
    [`${entry}, grant_id) values ($1, null, 3, 'grant', -5, 90, $2)`, lowered],
    ofOrganization,
  ],
  [
    unconfirmed,
    "a charge that is neither confirmed nor reversed after eleven minutes",
    [
      "insert into undelivered (organization_id, request_id, charged_at) values ($1, $2, now() - interval '11 minutes')",
    ],
  ],
  [
    unconfirmed,
    "a right to give back what was given back before",
    [...givenBack(), "insert into undelivered (organization_id, request_id) values ($1, $2)"],
  ],
  [
    keyPaid,
    "a key that is said to have paid, without a charge",
    [
      `insert into answers (slot, organization_id, key_hash, fingerprint, request_id, body, expires_at)
       values (answer_slot(now()), $1, 'hash', 'fingerprint', $2 || '0', '', now() + interval '1 hour')`,
    ],
  ],
];

const brokenVerdict = z.strictObject({
  ok: z.boolean(),
  organizations: z.int(),
  entries: z.int(),
  readEntries: z.int(),
  redisChecked: z.boolean(),
  violations: z.array(z.strictObject({ rule: z.string(), subject: z.string(), found: z.string() })),
});

test("a correct ledger has no violations, while searches run and afterwards", async () => {
  const { token } = await service.organization();
  const searches = Promise.all(
    Array.from({ length: 30 }, (_, n) => service.search(token, { keyword: `sandbox:slow=${n * 50}` })),
  );
  const during = await operator.run("ledger", "verify");
  expect(during).toMatchObject({ ok: true, redisChecked: true, violations: [] });
  await searches;
  await service.rest();
  const { rows } = await service.database.query("select count(*) as entries from ledger_entries");
  const { entries } = rows[0];
  const verdict = { ok: true, organizations: 1, entries, readEntries: entries, redisChecked: true, violations: [] };
  expect(await operator.run("ledger", "verify", "--full")).toEqual(verdict);
  expect(await operator.run("ledger", "verify")).toEqual({ ...verdict, readEntries: 0 });
});

test("a full Redis does not keep the ledger from being verified", async () => {
  await service.organization();
  await service.redis.config("SET", "maxmemory", "1");
  const result = await operator.try("ledger", "verify");
  await service.redis.config("SET", "maxmemory", "0");
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(result.stdout)).toMatchObject({ ok: true, redisChecked: true });
});

test("a miscounted hour of refunds is found, however many there are before it and after it", async () => {
  const { database, url } = await openFreshDatabase(onTestFinished);
  const organizationId = await createPayer(database, 0);
  const miscounted = [2, 4, 6];
  await asOwner(url, async (client) => {
    await client.query(
      `insert into refunds (organization_id, request_id, version, reason, created_at)
       select $1, 'req_' || hours || '_' || n, 0, 'no_result', now() - make_interval(hours => hours)
       from generate_series(2, 6) hours, generate_series(1, case hours when 4 then 25000 else 10000 end) n`,
      [organizationId],
    );
    await client.query(
      `insert into refund_counts
       select organization_id, date_trunc('hour', created_at, 'UTC'), '', reason, count(*), min(request_id) from refunds group by 1, 2, 3, 4`,
    );
    await client.query(
      `update refund_counts set searches = searches - 1
       where hour in (select date_trunc('hour', now(), 'UTC') - make_interval(hours => hours) from unnest($1::int[]) hours)`,
      [miscounted],
    );
  });
  const violation = {
    rule: refundsCounted,
    subject: organizationId,
    found: expect.stringMatching(/: counted (9999, refunds 10000|24999, refunds 25000)$/),
  };
  const report = { ok: false, violations: miscounted.map(() => violation) };
  expect(await verifyLedger(database, undefined)).toMatchObject(report);
  expect(await verifyLedger(database, undefined, { isFull: true })).toMatchObject(report);
});

test("each broken rule is reported with its subject, and no other organization or request is", async () => {
  await service.organization();
  const planted: { rule: string; subject: string; title: string }[] = [];
  const searched = await searchedOnce(
    damages.map(([rule, title, statements, options]) => ({ rule, title, statements, ...options })),
  );
  const copied = await searchedOnce([
    { title: "a copy in Redis of another balance", copy: { balance: 96, version: 2 } },
    { title: "a copy in Redis from the future", copy: { balance: 95, version: 3 } },
  ]);
  const held = await searchedOnce([
    { rule: heldSums, title: "a held sum without holds", hold: { held: "7" } },
    { rule: overdue, title: "a hold that is still open after its deadline", hold: { held: "5" } },
    { rule: indexed, title: "a hold that the index lacks", hold: { held: "5" } },
    { rule: indexed, title: "an entry of the index without a hold", hold: { held: "0" } },
  ]);
  // Running workers and APIs would repair some of them: wrong copies in Redis, and old undelivered charges.
  await Promise.all([...service.workers, ...service.apis].map((process) => process.stop()));
  await asOwner(service.databaseUrl, async (client) => {
    await withoutSafeguards(client);
    for (const { damage, organizationId, requestId } of searched) {
      for (const statement of damage.statements) await client.query(statement, [organizationId, requestId]);
      const subject = damage.subject === "organization" ? organizationId : requestId;
      planted.push({ rule: damage.rule, subject, title: damage.title });
    }
  });
  for (const { damage, organizationId } of copied) {
    await service.redis.hset(keysOf(organizationId).balance, damage.copy);
    planted.push({ rule: copies, subject: organizationId, title: damage.title });
  }

  for (const { damage, organizationId, requestId } of held) {
    const isOpen = damage.hold.held === "5";
    const deadlineMs = damage.rule === overdue ? 1_000 : Date.now();
    const hold = isOpen ? { [requestId]: `5:${deadlineMs}:` } : {};
    await service.redis.hset(keysOf(organizationId).holds, { ...damage.hold, ...hold });
    if (damage.rule === (isOpen ? overdue : indexed))
      await service.redis.zadd(holdIndexKey, deadlineMs, `${organizationId}|${requestId}|`);
    const subject = damage.rule === heldSums ? organizationId : requestId;
    planted.push({ rule: damage.rule, subject, title: damage.title });
  }

  const { exitCode, stdout, stderr } = await operator.try("ledger", "verify", "--full");
  expect({ exitCode, stderr }).toEqual({ exitCode: 4, stderr: "" });
  const { ok, redisChecked, violations } = brokenVerdict.parse(readLine(stdout));
  expect({ ok, redisChecked }).toEqual({ ok: false, redisChecked: true });
  const isNamed = (rule: string, subject: string) =>
    violations.some((violation) => violation.rule === rule && violation.subject.startsWith(subject));
  expect(planted.filter(({ rule, subject }) => !isNamed(rule, subject))).toEqual([]);
  expect(new Set(violations.map(({ rule }) => rule))).toEqual(new Set(planted.map(({ rule }) => rule)));
  const damaged = [...searched, ...copied, ...held].flatMap((one) => [one.organizationId, one.requestId]);
  expect(violations.filter(({ subject }) => !damaged.some((id) => subject.startsWith(id)))).toEqual([]);
});

/** For each an organization with 95 mils left of 100: a grant, and one search that was charged. */
async function searchedOnce<Given extends { title: string; keyed?: true }>(given: readonly Given[]) {
  const searched = await Promise.all(
    given.map(async (damage) => {
      const { organizationId, token }: Organization = await service.organization({ creditMils: 100 });
      const options = damage.keyed ? { key: damage.title.slice(0, 8).replaceAll(" ", "-") } : {};
      const { body } = await service.search(token, { keyword: damage.title }, options);
      return { damage, organizationId, requestId: String(body.requestId) };
    }),
  );
  await service.rest();
  return searched;
}

async function withoutSafeguards(client: Client): Promise<void> {
  await client.query("set session_replication_role = replica"); // No triggers, no foreign keys.
  await client.query("drop index one_charge_per_request");
  await client.query("alter table ledger_entries drop constraint only_charges_and_corrections_lower_a_balance");
}
