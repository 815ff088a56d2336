import { pino } from "pino";
import { afterAll, expect, test } from "vitest";
import { readCredit } from "../../shared/credits/ledger.ts";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { readStoredBalances, storeBalance } from "../../shared/credits/stored-balances.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { reconcileNextPage } from "../../worker/reconcile.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../harness/servers/open-database.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";

/** A balance in Postgres is wrong, as after a defect or a change by hand. */

const [{ redis, close: closeRedis }, { database, url, close }] = await Promise.all([
  openFreshRedis(),
  openFreshDatabase(),
]);
afterAll(() => Promise.all([closeRedis(), close()]));

const changeBalance = (organizationId: string, mils: number) =>
  asOwner(url, (owner) =>
    owner.query("update organizations set balance_mils = balance_mils + $2 where id = $1", [organizationId, mils]),
  );

/** @returns the measured drift, and what was logged. */
async function compare(): Promise<{ driftMils: number | undefined; lines: unknown[] }> {
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
    expect(await compare()).toEqual({ driftMils: 1, lines: [line] });
    // What searches see is read from Postgres again.
    expect((await readStoredBalances(redis, [organizationId])).size).toBe(0);
    await changeBalance(organizationId, -1);
    expect(await compare()).toEqual({ driftMils: 0, lines: [] });
  },
);

test("a copy in Redis that is wrong beside a right balance is measured with its error, and logged as Redis' fault", async () => {
  const organizationId = await createPayer(database, 100);
  const version = (await readCredit(database, organizationId))?.balance.version ?? 0;
  await redis.hset(keysOf(organizationId).balance, { balance: 103, version });
  const { driftMils, lines } = await compare();
  expect(driftMils).toBe(3);
  expect(lines).toMatchObject([{ organizationId, msg: "Redis has an impossible copy of a balance" }]);
});
