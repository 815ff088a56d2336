import { afterAll, expect, test } from "vitest";
import { admit } from "../../shared/credits/admit.ts";
import { decideSettlements, readCredit } from "../../shared/credits/ledger.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { openLog } from "../../shared/log.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { changeLimits } from "../../api/organizations/limits.ts";
import { issueToken } from "../../api/tokens/tokens.ts";
import { reconcileNextPage } from "../../worker/reconcile.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";
import { request } from "../shared/credits/hold-requests.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { createPayer } from "../harness/fixtures/payer.ts";

const terms = { dayMils: 100 };

const [{ redis, close: closeRedis }, { database, url, close }] = await Promise.all([
  openFreshRedis(),
  openFreshDatabase(),
]);
afterAll(() => Promise.all([closeRedis(), close()]));
const organizationId = await createPayer(database, 1_000);

/** A token with a limit, and what it spent in Redis. */
async function limitedToken(): Promise<string> {
  const tokenId = (await issueToken(database, organizationId))?.tokenId ?? "";
  await changeLimits(database, "token", tokenId, terms);
  await copy(tokenId);
  return tokenId;
}
async function copy(tokenId: string): Promise<void> {
  const credit = await readCredit(database, organizationId, { tokenId });
  if (!credit?.token) throw new Error("no spending");
  await storeBalance(redis, organizationId, credit.balance, [credit.token]);
}

const fields = async () => (await redis.hkeys(keysOf(organizationId).tokens)).toSorted();
const reconcile = () =>
  reconcileNextPage(
    { database, redis, metrics: openMetrics(), log: openLog({ name: "test", level: "silent" }) },
    { after: "", driftMils: 0 },
  );
const search = (tokenId: string) =>
  request(organizationId, { limits: { organization: undefined, token: { ...terms, tokenId } } });
const change = (text: string, tokenId: string) =>
  asOwner(url, (owner) => owner.query(`update tokens set ${text} where id = $1`, [tokenId]));

test("Redis forgets what a token spent that is revoked, expired or without a limit, and its search in flight still settles", async () => {
  const [limited, unlimited, revoked, expired] = await Promise.all([1, 2, 3, 4].map(limitedToken));
  if (!limited || !unlimited || !revoked || !expired) throw new Error("no token");
  const running = search(unlimited);
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
  const again = request(organizationId, {
    limits: { organization: undefined, token: { ...terms, dayMils: 9, tokenId: unlimited } },
  });
  expect(await admit(redis, again)).toMatchObject({ outcome: "balance_missing" });
  await copy(unlimited);
  expect(await admit(redis, again)).toMatchObject({ outcome: "spending_limit", spentMils: 5 });
});
