import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { processUrlOf } from "../../local/postgres.ts";
import { readConfig } from "../../shared/config.ts";
import { indexEntryOf } from "../../shared/credits/open-holds.ts";
import { holdIndexKey, keysOf } from "../../shared/credits/redis-keys.ts";
import { Settlement } from "../../shared/credits/settlement.ts";
import { newId } from "../../shared/ids.ts";
import { openContext } from "../../shared/process/context.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { whenReady } from "../../shared/redis/connect.ts";
import { sweepHolds } from "../../worker/sweep-holds.ts";
import { becomes } from "../harness/assertions/eventually.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { freshDatabase, freshRedis } from "../harness/servers/servers.ts";

test("a sweep that meets a locked organization ends before the lease of the leader, and ends the holds of all others", async () => {
  const [postgres, server] = await Promise.all([freshDatabase(), freshRedis()]);
  const DATABASE_URL = processUrlOf(postgres.url);
  const config = readConfig({ DATABASE_URL, REDIS_URL: server.url, SERP_PROVIDERS: "sandbox" });
  const context = openContext({ config, name: "worker", databaseSizeMax: 4, log: pino({ level: "silent" }) });
  onTestFinished(async () => {
    await context.shutdown.run(context.log);
    await Promise.all([server.stop(), postgres.drop()]);
  });
  const { redis, database } = context;
  await whenReady(redis, 60_000);
  const sweeping = { ...context, settlement: new Settlement(context) };
  const overdueHolds = async (searches: number, deadlineAtMs: number) => {
    const organizationId = await createPayer(database);
    const { holds } = keysOf(organizationId);
    const ids = Array.from({ length: searches }, () => newId("req"));
    await redis.hset(holds, { held: 0, ...Object.fromEntries(ids.map((id) => [id, `0:${deadlineAtMs}:`])) });
    const entries = ids.map((requestId) => indexEntryOf({ organizationId, requestId, keyHash: "" }));
    await redis.zadd(holdIndexKey, ...entries.flatMap((entry) => [deadlineAtMs, entry]));
    return { organizationId, open: async () => (await redis.hlen(holds)) - 1 };
  };
  // The oldest, and more than a page.
  const locked = await overdueHolds(1_200, 1_000);
  const sweepsInTime = async () => {
    const other = await overdueHolds(1, 2_000);
    const beganAtMs = performance.now();
    await expect(sweepHolds(sweeping)).rejects.toThrow(/lock/);
    const tookMs = performance.now() - beganAtMs;
    return (await other.open()) === 0 && tookMs < protocolTimes.leaderLeaseMs;
  };
  await asOwner(postgres.url, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [locked.organizationId]);
    // On a busy machine one run may take longer for another reason.
    expect(await becomes(sweepsInTime)).toBe(true);
    await owner.query("commit");
  });
  await sweepHolds(sweeping);
  expect(await locked.open()).toBe(0);
});
