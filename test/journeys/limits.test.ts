import { expect, test } from "vitest";
import { holdIndexKey, keysOf } from "../../shared/credits/redis-keys.ts";
import { reverseCharges } from "../../shared/credits/deliveries.ts";
import { changeLimits, type LimitChange } from "../../api/organizations/limits.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { endlessWindow } from "../harness/fixtures/refusals.ts";
import { usualService } from "../harness/processes/usual-stack.ts";
import { asOwner } from "../harness/servers/as-owner.ts";

/** Mils a day and a month, which the payer sets for the organization and for a token. */

const priceMils = 5;
const spare = { creditMils: 100_000, terms: {} };

const service = await usualService({ apis: 2 });

const limited = async (organizationId: string, change: LimitChange) => {
  await changeLimits(service.database, "organization", organizationId, change);
  await publishIdentityChange(service.redis);
};
const limitedToken = async (tokenId: string, change: LimitChange) => {
  await changeLimits(service.database, "token", tokenId, change);
  await publishIdentityChange(service.redis);
};
/** Waits until each API has read so many limits of a token that it knew without them. */
const untilLimited = async (token: string, limits: number) => {
  for (const api of [0, 1])
    await service.until(async () => (await service.usage(token, api)).body.limits?.length === limits);
};
/** Searches as a caller does that tries again while a busy service answers 503: on a slow machine it sheds searches. */
async function searchPatiently(...search: Parameters<typeof service.search>) {
  for (;;) {
    const answer = await service.search(...search);
    if (answer.status !== 503) return answer;
  }
}
const searchMany = async (token: string, count: number, name: string) => {
  const answers = await Promise.all(
    Array.from({ length: count }, (_, at) => searchPatiently(token, { keyword: `${name} ${at}` }, { api: at % 2 })),
  );
  return answers.map(({ status }) => status).toSorted((a, b) => a - b);
};
const forgetOrganization = async (organizationId: string) =>
  service.redis.del(holdIndexKey, ...(await service.redis.keys(`{${organizationId}}:*`)));
const refunds = async (organizationId: string) =>
  (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "refund");
const chargedMils = async (organizationId: string) =>
  (await service.ledgerOf(organizationId)).reduce((sum, entry) => sum + (entry.kind === "charge" ? -entry.mils : 0), 0);

test("a refusal by a limit names it, when it renews and what is left, and takes no hold and no request of the window", async () => {
  const { organizationId, token } = await service.organization({ ...spare, terms: endlessWindow });
  await limited(organizationId, { dayMils: 7, monthMils: 12 });
  const first = await service.search(token, { keyword: "one" });
  expect(first.status).toBe(200);
  await service.rest();
  const refused = await service.search(token, { keyword: "two" });
  const now = new Date();
  const tomorrow = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
  expect(refused).toMatchObject({
    status: 402,
    body: {
      error: {
        code: "out_of_credits",
        details: {
          priceMils,
          availableMils: 2,
          heldMils: 0,
          action: "raise_limit",
          topupUrl: "/billing",
          reason: "daily_limit",
          period: "day",
          limitMils: 7,
          renewsAt: tomorrow.toISOString(),
        },
      },
    },
  });
  await limited(organizationId, { dayMils: null });
  // The API reads the new limit a moment after it was announced. Until then the search is refused, and takes nothing.
  await service.until(async () => (await service.search(token, { keyword: "three" })).status === 200);
  const monthly = await service.search(token, { keyword: "four" });
  expect(monthly).toMatchObject({
    status: 402,
    body: { error: { details: { reason: "monthly_limit", limitMils: 12 } } },
  });
  expect(await service.holdsOf(organizationId)).toMatchObject({ heldMils: 0 });
  expect(await refunds(organizationId)).toEqual([]);
  // The third request of the window is this one: the refusals took none.
  const usage = await service.usage(token);
  expect(usage.headers.get("ratelimit")).toContain(`r=${100_000 - 3}`);
});

test("a token's limit stops that token and no other, and what it spent before the limit counts", async () => {
  const { organizationId, token, tokenId } = await service.organization(spare);
  const other = await service.issue(organizationId);
  expect(await searchMany(token, 3, "before")).toEqual([200, 200, 200]);
  await service.rest();
  await limitedToken(tokenId, { dayMils: 5 * priceMils });
  await untilLimited(token, 1);
  expect((await searchMany(token, 6, "after")).filter((status) => status === 200)).toHaveLength(2);
  const refused = await service.search(token, { keyword: "refused" });
  expect(refused).toMatchObject({
    status: 402,
    body: {
      error: {
        message: expect.stringContaining("The token's spending limit of 25 mils for a day does not cover this search"),
        details: { reason: "token_limit", period: "day", limitMils: 25, availableMils: 0 },
      },
    },
  });
  expect((await service.search(other.token, { keyword: "other" })).status).toBe(200);
});

test("usage shows the limits that apply to the token with what was spent, and no key of them without limits", async () => {
  const { organizationId, token, tokenId } = await service.organization(spare);
  expect(Object.keys((await service.usage(token)).body)).toEqual(["creditBalanceMils", "plan"]);
  await limited(organizationId, { monthMils: 40 });
  await limitedToken(tokenId, { dayMils: 10 });
  await untilLimited(token, 2);
  expect((await service.search(token, { keyword: "shown" })).status).toBe(200);
  await service.rest();
  const { body } = await service.usage(token);
  expect(body.limits).toMatchObject([
    { scope: "organization", period: "month", limitMils: 40, spentMils: priceMils, heldMils: 0 },
    { scope: "token", period: "day", limitMils: 10, spentMils: priceMils, heldMils: 0 },
  ]);
});

test.each(["organization", "token"] as const)(
  "a day of the %s ends by the clock of Postgres, whatever that of Redis says",
  async (scope) => {
    const { organizationId, token, tokenId } = await service.organization(spare);
    if (scope === "organization") await limited(organizationId, { dayMils: priceMils });
    else await limitedToken(tokenId, { dayMils: priceMils });
    await untilLimited(token, 1);
    const { balance, tokens } = keysOf(organizationId);
    const copy = scope === "organization" ? ([balance, "spent"] as const) : ([tokens, tokenId] as const);
    /** To Redis, the day in which all was spent is over. */
    const endDay = async () => {
      const [version] = (await service.redis.hget(...copy))?.split(":") ?? [];
      await service.redis.hset(...copy, `${version}:1:${priceMils}:${priceMils}:2`);
    };
    await endDay();
    expect((await service.search(token, { keyword: "on the next day" })).status).toBe(200);
    await service.rest();
    await endDay();
    expect((await service.search(token, { keyword: "on the same day" })).status).toBe(402);
    // A search that is admitted and then refused has called a provider for nothing.
    expect(await refunds(organizationId)).toEqual([]);
  },
);

test("a charge that is given back counts no longer, also where Redis does not know of it", async () => {
  const { organizationId, token, tokenId } = await service.organization(spare);
  await limited(organizationId, { dayMils: priceMils });
  await limitedToken(tokenId, { monthMils: priceMils });
  const { body } = await service.search(token, { keyword: "given back" });
  await service.rest();
  expect((await service.search(token, { keyword: "refused" })).status).toBe(402);
  const text = "insert into undelivered (request_id, organization_id) values ($1, $2)";
  await asOwner(service.databaseUrl, (client) => client.query(text, [body.requestId, organizationId]));
  await reverseCharges(service.database, [{ organizationId, requestId: body.requestId }], "undelivered");
  // An API asks Postgres about the same refusal again after a quarter of a second.
  await service.until(async () => (await service.search(token, { keyword: "paid" })).status === 200);
  await service.rest();
  expect((await service.search(token, { keyword: "refused again" })).status).toBe(402);
});

test("after Redis lost everything, what was spent is read from Postgres, and searches that it forgot are refused beyond the limit", async () => {
  const { organizationId, token, tokenId } = await service.organization(spare);
  await limited(organizationId, { dayMils: 4 * priceMils });
  await limitedToken(tokenId, { dayMils: 4 * priceMils });
  expect(await searchMany(token, 2, "before")).toEqual([200, 200]);
  await service.rest();
  await forgetOrganization(organizationId);
  expect((await searchMany(token, 4, "after")).filter((status) => status === 200)).toHaveLength(2);
  expect(await refunds(organizationId)).toEqual([]);

  const { organizationId: forgetful, token: forgotten } = await service.organization(spare);
  await limited(forgetful, { dayMils: 2 * priceMils });
  const running = ["a", "b"].map((name) => service.search(forgotten, { keyword: `sandbox:slow=1500 ${name}` }));
  await service.until(async () => (await service.holdsOf(forgetful)).open === 2);
  await forgetOrganization(forgetful);
  const more = ["c", "d"].map((name) => service.search(forgotten, { keyword: name }));
  const answers = await Promise.all([...running, ...more]);
  expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 200, 402, 402]);
  expect(answers.find(({ status }) => status === 402)).toMatchObject({
    body: { error: { details: { reason: "daily_limit", limitMils: 10 } } },
  });
  expect(await chargedMils(forgetful)).toBe(2 * priceMils);
});

test("under a key a repeat of a paid search is answered at the limit, and a new key is refused", async () => {
  const { organizationId, token } = await service.organization(spare);
  await limited(organizationId, { dayMils: priceMils });
  const body = { keyword: "keyed" };
  expect((await service.search(token, body, { key: "paid" })).status).toBe(200);
  expect((await service.search(token, body, { key: "paid" })).headers.get("idempotency-replayed")).toBe("true");
  expect((await service.search(token, body, { key: "new" })).status).toBe(402);
});

test("searches that run while the limits are lowered to 0 are answered and paid, and a new one is refused", async () => {
  const { organizationId, token, tokenId } = await service.organization(spare);
  await limited(organizationId, { dayMils: 100 * priceMils });
  const running = [{}, { key: "lowered" }].map((options, at) =>
    service.search(token, { keyword: `sandbox:slow=1500 lowered ${at}` }, options),
  );
  await service.until(async () => (await service.holdsOf(organizationId)).open === 2);
  await limited(organizationId, { dayMils: 0 });
  await limitedToken(tokenId, { monthMils: 0 });
  expect((await Promise.all(running)).map(({ status }) => status)).toEqual([200, 200]);
  await service.rest();
  expect(await chargedMils(organizationId)).toBe(2 * priceMils);
  await service.until(async () => (await service.search(token, { keyword: "at 0" })).status === 402);
});

test("the books are whole after all of it", async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});
