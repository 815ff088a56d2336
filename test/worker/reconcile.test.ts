import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { changeLimits } from "../../api/organizations/limits.ts";
import { issueToken } from "../../api/tokens/tokens.ts";
import { admit } from "../../shared/credits/admit.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { decideSettlements, readCredit } from "../../shared/credits/ledger.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { readStoredBalances, storeBalance } from "../../shared/credits/stored-balances.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { reconcileNextPage } from "../../worker/reconcile.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";
import { request } from "../shared/credits/hold-requests.ts";

const { redis } = await openFreshRedis(afterAll);
const { database, url } = await openFreshDatabase(afterAll);

/** Makes a balance in Postgres wrong, as a defect or a change by hand does. */
const changeBalance = (organizationId: string, mils: number) =>
  asOwner(url, "update organizations set balance_mils = balance_mils + $2 where id = $1", [organizationId, mils]);

/** @returns the measured drift, and what was logged. */
async function reconcile(): Promise<{ driftMils: number | undefined; lines: unknown[] }> {
  const metrics = openMetrics();
  const lines: unknown[] = [];
  const log = pino({ base: null, timestamp: false }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  await reconcileNextPage({ database, redis, metrics, log }, { after: "", driftMils: 0 });
  return { driftMils: (await metrics.ledgerDriftMils.get()).values[0]?.value, lines };
}

test.each(["with a right copy in Redis", "without a copy in Redis"])(
  "a balance that is a mil too high is measured as one mil, and the log names its organization with both numbers, %s",
  async (copy) => {
    const organizationId = await createPayer(database, 100);
    const credit = await readCredit(database, organizationId);
    if (!credit) throw new Error("no credit");
    if (copy.startsWith("with ")) await storeBalance(redis, organizationId, credit.balance);
    await changeBalance(organizationId, 1);
    const msg = "a balance differs from its ledger";
    const line = { level: 50, organizationId, balance: { ...credit.balance, balanceMils: 101 }, ledgerMils: 100, msg };
    expect(await reconcile()).toEqual({ driftMils: 1, lines: [line] });
    // What searches see is read from Postgres again.
    expect((await readStoredBalances(redis, [organizationId])).size).toBe(0);
    await changeBalance(organizationId, -1);
    expect(await reconcile()).toEqual({ driftMils: 0, lines: [] });
  },
);

test("a copy in Redis that is wrong beside a right balance is measured with its error, and logged as Redis' fault", async () => {
  const organizationId = await createPayer(database, 100);
  const version = (await readCredit(database, organizationId))?.balance.version ?? 0;
  await redis.hset(keysOf(organizationId).balance, { balance: 103, version });
  const { driftMils, lines } = await reconcile();
  expect(driftMils).toBe(3);
  expect(lines).toMatchObject([{ organizationId, msg: "Redis has an impossible copy of a balance" }]);
});

test("Redis forgets what a token spent that is revoked, expired or without a limit, and its search in flight still settles", async () => {
  const organizationId = await createPayer(database, 1_000);
  const dayMils = 100;
  const copy = async (tokenId: string) => {
    const credit = await readCredit(database, organizationId, { tokenId });
    if (!credit?.token) throw new Error("no spending");
    await storeBalance(redis, organizationId, credit.balance, [credit.token]);
  };
  /** A token with a limit, and what it spent in Redis. */
  const limitedToken = async () => {
    const tokenId = (await issueToken(database, organizationId))?.tokenId ?? "";
    await changeLimits(database, "token", tokenId, { dayMils });
    await copy(tokenId);
    return tokenId;
  };
  const fields = async () => (await redis.hkeys(keysOf(organizationId).tokens)).toSorted();
  const search = (limit: { tokenId: string; dayMils: number }) =>
    request(organizationId, { limits: { organization: undefined, token: limit } });
  const change = (text: string, tokenId: string) => asOwner(url, `update tokens set ${text} where id = $1`, [tokenId]);

  const [limited, unlimited, revoked, expired] = await Promise.all([1, 2, 3, 4].map(limitedToken));
  if (!limited || !unlimited || !revoked || !expired) throw new Error("no token");
  const running = search({ tokenId: unlimited, dayMils });
  expect(await admit(redis, running)).toMatchObject({ outcome: "held" });
  await changeLimits(database, "token", unlimited, { dayMils: null, monthMils: null });
  await change("revoked_at = now()", revoked);
  await change("expires_at = now()", expired);

  await reconcile();
  expect(await fields()).toEqual([limited, `held:${unlimited}`, running.requestId].toSorted());

  const { requestId } = running;
  const charge = chargeOf(organizationId, { requestId, tokenId: unlimited });
  const decision = (await decideSettlements(database, [charge])).get(requestId);
  if (!decision?.token) throw new Error("no decision");
  await settleHolds(redis, organizationId, decision.balance, [{ requestId }], { tokens: [decision.token] });
  await reconcile();
  expect(await fields()).toEqual([limited]);

  // A limit that is set again finds what was spent in Postgres.
  await changeLimits(database, "token", unlimited, { dayMils: 9 });
  const again = search({ tokenId: unlimited, dayMils: 9 });
  expect(await admit(redis, again)).toMatchObject({ outcome: "balance_missing" });
  await copy(unlimited);
  expect(await admit(redis, again)).toMatchObject({ outcome: "spending_limit", spentMils: 5 });
});
