import { afterAll, expect, test } from "vitest";
import { z } from "zod";
import { verifyLedger } from "../../../commands/ledger.ts";
import { reverseCharges } from "../../../shared/credits/deliveries.ts";
import { correctCredit, decideSettlements, grantCredit, readCredit } from "../../../shared/credits/ledger.ts";
import { renewalBehind, spentIn } from "../../../shared/credits/limits.ts";
import type { PayerLimits } from "../../../shared/queue/search-job.ts";
import { newId } from "../../../shared/ids.ts";
import { changeLimits, type LimitChange } from "../../../api/organizations/limits.ts";
import { Service } from "../../harness/processes/service.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";

/** What Postgres counts against limits, and the charges that it refuses beyond them. */

const priceMils = 5;

const service = await Service.start({ apis: 0, workers: 0, end: afterAll });

interface Payer {
  organizationId: string;
  tokenId: string;
}

/** Wants to charge this many searches in one batch. @returns the reasons of those that were refused. */
async function charge({ organizationId, tokenId }: Payer, count: number, mils = priceMils) {
  const requests = Array.from({ length: count }, () => chargeOf(organizationId, { tokenId, priceMils: mils }));
  const decisions = [...(await decideSettlements(service.database, requests)).values()];
  return {
    charged: decisions.filter(({ kind }) => kind === "charge").map(({ requestId }) => requestId),
    refused: decisions.flatMap(({ reason }) => reason ?? []),
  };
}

const limitOrganization = ({ organizationId }: Payer, limits: LimitChange) =>
  changeLimits(service.database, "organization", organizationId, limits);
const limitToken = ({ tokenId }: Payer, limits: LimitChange) =>
  changeLimits(service.database, "token", tokenId, limits);
const limitBoth = async (payer: Payer, limits: LimitChange) => {
  await limitOrganization(payer, limits);
  await limitToken(payer, limits);
};
const grant = (payer: Payer) =>
  grantCredit(service.database, { ...payer, grantId: newId("grant"), mils: 70, reason: "test" });

/** What counts on this day and in this month, of the organization and the token. */
async function spending({ organizationId, tokenId }: Payer) {
  const credit = await readCredit(service.database, organizationId, { tokenId });
  return [credit?.balance.spending, credit?.token?.spending].map(
    (text) => text && [spentIn("day", text), spentIn("month", text)],
  );
}

/** That of an organization and of its only token, which spent the same. */
const both = (day: number, month = day) => Array.from({ length: 2 }, () => [day, month]);

/** Makes everything that was counted and charged until now look as old as this. */
async function age({ organizationId, tokenId }: Payer, interval: string) {
  await asOwner(service.databaseUrl, async (client) => {
    await client.query("alter table ledger_entries disable trigger ledger_is_append_only");
    const older = "created_at = created_at - $1::interval";
    await client.query(`update ledger_entries set ${older} where organization_id = $2`, [interval, organizationId]);
    await client.query("alter table ledger_entries enable trigger ledger_is_append_only");
    const day = "spending_day = (spending_day - $1::interval)::date where id = $2";
    await client.query(`update organizations set ${day}`, [interval, organizationId]);
    await client.query(`update tokens set ${older}, ${day}`, [interval, tokenId]);
  });
}

test("a limit counts what was spent before it was set, on that day and in that month, and no credit that was added", async () => {
  const payer = await service.organization();
  await charge(payer, 3);
  await grant(payer);
  await limitOrganization(payer, { dayMils: 1_000 });
  await limitToken(payer, { monthMils: 1_000 });
  expect(await spending(payer)).toEqual(both(15));
  await grant(payer);
  await charge(payer, 1);
  expect(await spending(payer)).toEqual(both(20));
});

test("a correction is no spending, whether a limit was set before it or after it", async () => {
  const payer = await service.organization();
  const correct = (mils: number) =>
    correctCredit(service.database, { ...payer, grantId: newId("correction"), mils, reason: "test" });
  await charge(payer, 3);
  await correct(-400);
  await limitOrganization(payer, { dayMils: 100, monthMils: 100 });
  expect(await spending(payer)).toEqual([[15, 15], undefined]);
  await correct(-300);
  await correct(25);
  expect((await charge(payer, 1)).refused).toEqual([]);
  expect(await spending(payer)).toEqual([[20, 20], undefined]);
  expect((await service.verify()).violations).toEqual([]);
});

test("charges of earlier days do not count against today, and those of the last month not against this one", async () => {
  const payer = await service.organization();
  await limitBoth(payer, { dayMils: 1_000 });
  await charge(payer, 2);
  await age(payer, "40 days");
  expect(await spending(payer)).toEqual(both(0));
  // The first entry of the new day is credit: it begins the count, and is not spending.
  await grant(payer);
  await charge(payer, 3);
  expect(await spending(payer)).toEqual(both(15));
  // Counted anew from the ledger, it is the same.
  await limitBoth(payer, { monthMils: 9 });
  expect(await spending(payer)).toEqual(both(15));
});

test("charges that waited for a lock at midnight count for the new day, also where they are counted anew", async () => {
  const payer = await service.organization();
  const [first] = (await charge(payer, 1)).charged;
  const count = () => limitBoth(payer, { dayMils: 1_000, monthMils: 1_000 });
  await count();
  await age(payer, "40 days");
  for (let searches = 0; searches < 12; searches += 1) await charge(payer, 1);
  // Of two that follow each other, the first began after midnight and the other before.
  await asOwner(service.databaseUrl, async (client) => {
    await client.query("set session_replication_role = replica");
    await client.query(
      `update ledger_entries l set created_at = date_trunc('day', now(), 'UTC') + (1 - 2 * ((l.version - f.version - 1) % 2)) * interval '1 second'
       from ledger_entries f where l.organization_id = f.organization_id and l.version > f.version and f.request_id = $1`,
      [first],
    );
  });
  const counted = both(12 * priceMils);
  expect(await spending(payer)).toEqual(counted);
  await count();
  expect(await spending(payer)).toEqual(counted);
  const { violations } = await verifyLedger(service.database, undefined, { isFull: true });
  expect(violations.filter(({ subject }) => Object.values(payer).includes(subject))).toEqual([]);
});

test("as many charges as the reconciler reverses at once are reversed in time on a later day", async () => {
  const payer = await service.organization();
  const { charged } = await charge(payer, 500, 0);
  await age(payer, "1 day");
  const requests = charged.map((requestId) => ({ ...payer, requestId }));
  const [reversal] = await reverseCharges(service.database, requests, "undelivered");
  expect(reversal?.requestIds).toHaveLength(500);
  const late = "select count(*)::integer as late from late_reversals where organization_id = $1";
  const { rows } = await asOwner(service.databaseUrl, late, [payer.organizationId]);
  expect(rows).toEqual([{ late: 500 }]);
});

test.each([
  { interval: "40 days", monthMils: 5 },
  // Yesterday is of this month, unless that has just begun.
  { interval: "1 day", monthMils: new Date().getUTCDate() === 1 ? 5 : 15 },
])("a reversal of a charge $interval ago gives nothing back to a day or month that did not count it", async (given) => {
  const payer = await service.organization();
  const { organizationId } = payer;
  await limitBoth(payer, { dayMils: 1_000 });
  const { charged } = await charge(payer, 4);
  await age(payer, given.interval);
  const reverse = (count: number) => {
    const charges = charged.splice(0, count).map((requestId) => ({ organizationId, requestId }));
    return reverseCharges(service.database, charges, "undelivered");
  };
  const seen = both(5, given.monthMils);
  // The first change of the new day, and one behind it.
  await reverse(1);
  await charge(payer, 1);
  await reverse(1);
  expect(await spending(payer)).toEqual(seen);
  // Counted anew from the ledger, it is the same.
  await limitBoth(payer, { monthMils: 900 });
  expect(await spending(payer)).toEqual(seen);
  expect((await service.verify()).violations).toEqual([]);
});

test.each([
  { whose: "organization", limit: { dayMils: 12 }, reason: "daily_limit" },
  { whose: "organization", limit: { monthMils: 12 }, reason: "monthly_limit" },
  { whose: "organization", limit: { dayMils: 12, monthMils: 12 }, reason: "monthly_limit" },
  { whose: "token", limit: { dayMils: 12 }, reason: "token_daily_limit" },
  { whose: "token", limit: { monthMils: 12 }, reason: "token_monthly_limit" },
  { whose: "token", limit: { dayMils: 12, monthMils: 12 }, reason: "token_monthly_limit" },
])(
  "of one batch, the charges beyond the $whose's limit are refused as $reason, whatever admitted them",
  async (given) => {
    const payer = await service.organization();
    await (given.whose === "token" ? limitToken : limitOrganization)(payer, given.limit);
    expect((await charge(payer, 4)).refused).toEqual([given.reason, given.reason]);
    expect((await charge(payer, 1, 2)).refused).toEqual([]);
    expect((await charge(payer, 1, 1)).refused).toEqual([given.reason]);
    expect((await charge(payer, 1, 0)).refused).toEqual([]);
  },
);

test.each(["organization", "token"] as const)(
  "searches are charged up to the larger of the %s's limit that admitted them and the present one, alone and in a batch",
  async (whose) => {
    const payer = await service.organization();
    const { organizationId, tokenId } = payer;
    const owner = whose === "token" ? tokenId : organizationId;
    const admittedBy = (dayMils?: number) => {
      const own = { ...(dayMils !== undefined && { dayMils }) };
      return whose === "token" ? { token: { tokenId, ...own } } : { organization: own };
    };
    const decide = async (count: number, limits: PayerLimits) => {
      const requests = Array.from({ length: count }, () => chargeOf(organizationId, { tokenId, priceMils, limits }));
      return [...(await decideSettlements(service.database, requests)).values()].map(({ kind }) => kind);
    };
    await changeLimits(service.database, whose, owner, { dayMils: 0 });
    expect(await decide(1, admittedBy(0))).toEqual(["refund"]);
    expect(await decide(1, admittedBy(priceMils))).toEqual(["charge"]);
    expect(await decide(3, admittedBy(2 * priceMils))).toEqual(["charge", "refund", "refund"]);
    expect(await decide(2, {})).toEqual(["charge", "charge"]);
    await changeLimits(service.database, whose, owner, { dayMils: 5 * priceMils });
    expect(await decide(2, admittedBy(priceMils))).toEqual(["charge", "refund"]);
    await changeLimits(service.database, whose, owner, { dayMils: null });
    expect(await decide(1, admittedBy(0))).toEqual(["charge"]);
  },
);

test("what a token's limit refuses uses up nothing of the organization's limit", async () => {
  const payer = await service.organization();
  await limitOrganization(payer, { dayMils: 2 * priceMils });
  await limitToken(payer, { dayMils: priceMils });
  const search = (tokenId = payer.tokenId) => chargeOf(payer.organizationId, { tokenId, priceMils });
  const batch = [search(), search(), search(), search(newId("tok"))];
  const decisions = await decideSettlements(service.database, batch);
  expect(batch.map(({ requestId }) => decisions.get(requestId)?.reason ?? "charged")).toEqual([
    "charged",
    "token_daily_limit",
    "token_daily_limit",
    "charged",
  ]);
});

test("limits that are removed refuse nothing, and a limit of an unknown organization or token is not set", async () => {
  const payer = await service.organization();
  await limitOrganization(payer, { dayMils: 0, monthMils: 0 });
  expect((await charge(payer, 1)).refused).toEqual(["monthly_limit"]);
  await limitOrganization(payer, { dayMils: null, monthMils: null });
  expect((await charge(payer, 1)).refused).toEqual([]);
  expect(await changeLimits(service.database, "organization", newId("org"), { dayMils: 1 })).toBeUndefined();
  expect(await changeLimits(service.database, "token", newId("tok"), { dayMils: 1 })).toBeUndefined();
});

test.each([
  { day: "2026-02-27", ends: { day: "2026-02-28", month: "2026-03-01" } },
  { day: "2026-12-31", ends: { day: "2027-01-01", month: "2027-01-01" } },
])("a limit that Postgres judged on $day renews when that day or its month ends", async ({ day, ends }) => {
  const { rows } = await service.database.query("select spending_text($1, 5, 12) as spending", [day]);
  const text = z.object({ spending: z.string() }).parse(rows[0]).spending;
  for (const period of ["day", "month"] as const)
    expect(renewalBehind(period, text)).toEqual(new Date(`${ends[period]}T00:00:00Z`));
});
