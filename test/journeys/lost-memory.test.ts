import { afterAll, expect, test } from "vitest";
import { keysOf } from "../../shared/credits/redis-keys.ts";
import { storeBalance } from "../../shared/credits/stored-balances.ts";
import { grantCredit, readCredit } from "../../shared/credits/ledger.ts";
import { summed } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";

const service = await Service.start({ end: afterAll });

test("a top-up that did not reach Redis is found before a search is refused", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 5 });
  expect((await service.search(token, { keyword: "tea" })).status).toBe(200);
  const grant = { organizationId, grantId: `grant_${organizationId}`, mils: 50, reason: "lost" };
  await grantCredit(service.database, grant);
  await grantCredit(service.database, grant); // A repeat counts once.
  // Right away: a second later the reconciler would have stored the balance.
  expect((await service.search(token, { keyword: "milk" })).status).toBe(200);
  await service.rest();
  expect((await service.usage(token)).body.creditBalanceMils).toBe(45);
});

test("a balance that Redis restored from an old snapshot does not admit a search that Postgres does not cover", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 10 });
  await service.usage(token);
  const past = await service.redis.hgetall(keysOf(organizationId).balance);
  for (const n of [1, 2]) expect((await service.search(token, { keyword: `n ${n}` })).status).toBe(200);
  await service.rest();
  await service.redis.hset(keysOf(organizationId).balance, past);

  const refused = await service.search(token, { keyword: "not covered" });
  expect(refused).toMatchObject({ status: 402, body: { error: { code: "out_of_credits" } } });
  expect((await readCredit(service.database, organizationId))?.balance).toMatchObject({ balanceMils: 0 });
  expect((await service.usage(token)).body.creditBalanceMils).toBe(0);
});

test("the reconciler deletes a balance in Redis that cannot be right, and counts it", async () => {
  const { organizationId, token } = await service.organization({ creditMils: 100 });
  await service.usage(token);
  const [worker] = service.workers;
  worker?.kill("SIGSTOP"); // So that the reconciler does not run before the wrong balance was seen.
  await storeBalance(service.redis, organizationId, { balanceMils: 1_000_000, version: 99 });
  expect((await service.usage(token)).body.creditBalanceMils).toBe(1_000_000);
  expect(await service.verify()).toMatchObject({ ok: false, violations: [{ subject: organizationId }] });

  worker?.kill("SIGCONT");
  await service.until(async () => (await service.usage(token)).body.creditBalanceMils === 100);
  // The worker counts what it has deleted already.
  await expect.poll(() => summed(service.workers, 'balances_stored_total{why="impossible"}')).toBeGreaterThan(0);
});

test("the heartbeat of a worker that died long ago is removed", async () => {
  const report = { concurrency: 1, slotsCeiling: 1, runMs: 1, reachesPostgres: true, atMs: Date.now() - 120_000 };
  await service.redis.hset("workers", "worker_long_gone", JSON.stringify(report));
  await service.until(async () => (await service.redis.hexists("workers", "worker_long_gone")) === 0);
  // The worker that runs may have lost its own with the memory of a test before: it reports again.
  await expect.poll(() => service.redis.hlen("workers")).toBe(1);
});
