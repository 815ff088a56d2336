import { type Logger, pino } from "pino";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { readConfig } from "../../shared/config.ts";
import { openContext } from "../../shared/process/context.ts";
import { indexEntryOf } from "../../shared/credits/open-holds.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { holdIndexKey, keysOf, suspectCopiesKey } from "../../shared/credits/redis-keys.ts";
import { Settlement } from "../../shared/credits/settlement.ts";
import { newId } from "../../shared/ids.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { whenReady } from "../../shared/redis/connect.ts";
import { processUrlOf } from "../../local/postgres.ts";
import { changeLimits } from "../../api/organizations/limits.ts";
import { issueToken } from "../../api/tokens/tokens.ts";
import { startMaintenance } from "../../worker/maintenance.ts";
import { sweepHolds } from "../../worker/sweep-holds.ts";
import { readBacklog } from "../../shared/queue/backlog.ts";
import { queueKeys, scorePerTurn } from "../../shared/queue/search-queue.ts";
import { reverseUndelivered } from "../../worker/reconcile.ts";
import { becomes, eventually } from "../harness/assertions/eventually.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { freshDatabase, freshRedis } from "../harness/servers/servers.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { createPayer } from "../harness/fixtures/payer.ts";

const lines: string[] = [];
const log = pino({ level: "info" }, { write: (line: string) => void lines.push(line) });

/** A worker's connections to servers of their own. */
async function openServers(settings: { databaseSizeMax: number; log: Logger }) {
  const [postgres, server] = await Promise.all([freshDatabase(), freshRedis()]);
  const urls = { DATABASE_URL: processUrlOf(postgres.url), REDIS_URL: server.url };
  const config = readConfig({ ...urls, SERP_PROVIDERS: "sandbox" });
  const context = openContext({ config, name: "worker", ...settings });
  const close = async () => {
    await context.shutdown.run(context.log);
    await Promise.all([server.stop(), postgres.drop()]);
  };
  return { ...context, settlement: new Settlement(context), ownerUrl: postgres.url, close };
}

const context = await openServers({ databaseSizeMax: 2, log });
startMaintenance(context, newId("worker"), { isCutOff: async () => false });
afterAll(context.close);

/** Charges of a token with a limit, whose delivery nothing has confirmed, and which leave 95 mils. */
async function newCharges(charges = 1, { database } = context) {
  const mils = 95 + 5 * charges;
  const organizationId = await createPayer(database, mils);
  const { tokenId = "" } = (await issueToken(database, organizationId)) ?? {};
  await changeLimits(database, "token", tokenId, { dayMils: mils });
  await decideSettlements(
    database,
    Array.from({ length: charges }, () => chargeOf(organizationId, { tokenId })),
  );
  const balance = async () =>
    Number(
      (await database.query("select balance_mils from organizations where id = $1", [organizationId])).rows[0]
        .balance_mils,
    );
  return { organizationId, tokenId, balance, isReversed: async () => (await balance()) === mils };
}

/** Makes all charges that are not confirmed six minutes older. */
const passSixMinutes = ({ ownerUrl } = context) =>
  asOwner(ownerUrl, "update undelivered set charged_at = charged_at - interval '6 minutes'");

async function failuresOf(step: string): Promise<number> {
  const { values } = await context.metrics.maintenanceFailures.get();
  return values.find(({ labels }) => labels.step === step)?.value ?? 0;
}

test("a step of maintenance that fails is counted, and stops none behind it", async () => {
  // A step of each run fails, and the one in front of the reversals.
  await eventually(() => context.redis.set(suspectCopiesKey, "no hash").then(Boolean));
  await context.redis.set("workers", "no sorted set");
  const { isReversed } = await newCharges();
  await passSixMinutes();
  await eventually(isReversed);
  await eventually(async () => (await failuresOf("gaps")) > 1 && (await failuresOf("heartbeats")) > 0);
  expect(await failuresOf("undelivered")).toBe(0);
  const reversedMils = async () => (await context.metrics.reversedMils.get()).values;
  await eventually(async () =>
    (await reversedMils()).some(({ labels, value }) => labels.reason === "undelivered" && value === 5),
  );
  expect((await context.metrics.ledgerDriftMils.get()).values).toHaveLength(1);
  await context.redis.del(suspectCopiesKey, "workers");
});

test("a worker stores every balance when it begins to lead, leads again, and has a new connection to Redis", async () => {
  const { database, metrics, redis } = context;
  const { balance } = keysOf(await createPayer(database, 100));
  const isLeader = async () => (await metrics.holdsOpen.get()).values.length > 0;
  await redis.set("maintenance", "another worker");
  await eventually(async () => !(await isLeader()));
  expect(await redis.exists(balance)).toBe(0);
  await redis.del("maintenance");
  await eventually(() => redis.exists(balance).then(Boolean));
  await redis.del(balance);
  redis.disconnect(true);
  await eventually(() => redis.exists(balance).then(Boolean));
});

test("a locked organization and a locked token keep no other organization's unconfirmed charges from being reversed", async () => {
  await asOwner(context.ownerUrl, async (owner) => {
    // Its charges are the oldest, and as many as a page has.
    const ofLocked = await newCharges(500);
    const [ofLockedToken, other] = [await newCharges(), await newCharges()];
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [ofLocked.organizationId]);
    await owner.query("select from tokens where id = $1 for update", [ofLockedToken.tokenId]);
    await passSixMinutes();
    await eventually(other.isReversed);
    expect([await ofLocked.balance(), await ofLockedToken.balance()]).toEqual([95, 95]);
    await owner.query("commit");
    await eventually(async () => (await ofLocked.isReversed()) && (await ofLockedToken.isReversed()));
  });
});

test("a reversal run that meets locked organizations ends before the lease of the leader", async () => {
  await asOwner(context.ownerUrl, async (owner) => {
    const locked = await Promise.all([newCharges(), newCharges(), newCharges()]);
    await owner.query("begin");
    await owner.query("select from organizations where id = any($1) for update", [
      locked.map(({ organizationId }) => organizationId),
    ]);
    await passSixMinutes();
    // On a busy machine one run may take longer for another reason.
    await eventually(async () => {
      const beganAtMs = performance.now();
      await reverseUndelivered(context);
      return performance.now() - beganAtMs < protocolTimes.leaderLeaseMs;
    });
    expect(await Promise.all(locked.map(({ balance }) => balance()))).toEqual([95, 95, 95]);
    await owner.query("commit");
  });
});

test("a run reverses as many unconfirmed charges as it has time for, such as those of an outage", async () => {
  const idle = await openServers({ databaseSizeMax: 2, log });
  onTestFinished(idle.close);
  const oneRunReversesAll = async () => {
    const { isReversed } = await newCharges(600, idle);
    await passSixMinutes(idle);
    await reverseUndelivered(idle);
    return isReversed();
  };
  // On a busy machine a run may have time for one page only.
  expect(await becomes(oneRunReversesAll)).toBe(true);
});

test("a hold of an organization that Postgres lacks is dropped, its copy of the balance recorded as a gap, and logged once", async () => {
  const { redis } = context;
  const [organizationId, requestId, keyHash] = [newId("org"), newId("req"), "a".repeat(64)];
  const keys = keysOf(organizationId);
  await redis.hset(keys.balance, { balance: 100, version: 7 });
  await redis.hset(keys.record(keyHash), { request: requestId, fingerprint: "query" });
  const hold = async (id: string) => {
    await redis.hset(keys.holds, { held: 5, [id]: `5:1000:${keyHash}` });
    await redis.zadd(holdIndexKey, 1_000, indexEntryOf({ organizationId, requestId: id, keyHash }));
    await eventually(async () => (await redis.hexists(keys.holds, id)) === 0);
  };
  await hold(requestId);
  await eventually(async () => (await redis.exists(keys.balance)) === 0);
  await hold(newId("req"));
  const lost = {
    organization_id: organizationId,
    redis_version: 7,
    version: 0,
    balance_mils: 0,
    redis_balance_mils: 100,
  };
  expect(await redis.hgetall(keys.holds)).toEqual({ held: "0" });
  expect(await redis.zcard(holdIndexKey)).toBe(0);
  expect(await redis.exists(keys.record(keyHash))).toBe(0);
  // Two more runs of maintenance find nothing.
  const before = await failuresOf("sweep");
  const { isReversed } = await newCharges();
  await passSixMinutes();
  await eventually(isReversed);
  expect(await failuresOf("sweep")).toBe(before);
  expect(lines.filter((line) => line.includes(requestId))).toHaveLength(1);
  expect((await context.database.query("select * from ledger_gaps")).rows).toMatchObject([lost]);
  expect((await context.metrics.ledgerGapsOpen.get()).values).toHaveLength(1);
});

test("searches that were not charged are forgotten after 30 days, and not before", async () => {
  const { database } = context;
  const organizationId = await createPayer(database);
  await asOwner(
    context.ownerUrl,
    `insert into refunds (organization_id, request_id, version, reason, created_at)
       select $1, 'req_' || days, 1, 'swept', now() - make_interval(days => days) from unnest(array[29, 31, 300]) days`,
    [organizationId],
  );
  const kept = async () => (await database.query("select request_id as id from refunds")).rows;
  await eventually(async () => (await kept()).length < 2);
  expect(await kept()).toEqual([{ id: "req_29" }]);
});

test("a search that failed is deleted with its keyword after an hour, although no other fails", async () => {
  const { redis, clock } = context;
  const fail = async (minutesAgo: number) => {
    const requestId = newId("req");
    await redis.hset(queueKeys.job(requestId), { data: JSON.stringify({ keyword: "tea" }) });
    await redis.zadd(queueKeys.failed, clock.nowMs() - minutesAgo * 60_000, requestId);
    return requestId;
  };
  const [young, old] = [await fail(59), await fail(61)];
  const left = async () => (await redis.zrange(queueKeys.failed, 0, "-1")).join();
  await eventually(async () => (await left()) === young);
  expect([await redis.exists(queueKeys.job(young)), await redis.exists(queueKeys.job(old))]).toEqual([1, 0]);
});

test("a dump shows in the metrics with the number of transactions since it began, also to a login that may not see its time", async () => {
  const age = async () => (await context.metrics.oldestSnapshotAge.get()).values[0]?.value ?? 0;
  await asOwner(context.ownerUrl, async (dumping) => {
    await dumping.query("begin isolation level repeatable read");
    await dumping.query("select from organizations");
    const transactions = "do $$ begin for n in 1..500 loop perform pg_current_xact_id(); commit; end loop; end $$";
    await asOwner(context.ownerUrl, transactions);
    await expect.poll(age).toBeGreaterThanOrEqual(500);
    await dumping.query("commit");
  });
  await expect.poll(age).toBeLessThan(500);
});

test("maintenance lowers the turns of waiting searches before BullMQ has no further ones", async () => {
  const { redis } = context;
  const lastTurn = 2 ** 21 - 1;
  await eventually(
    async () => (await redis.zadd(queueKeys.waitingByTurn, lastTurn * scorePerTurn, newId("req"))) === 1,
  );
  await eventually(async () => (await readBacklog(redis)).turn < lastTurn);
  expect(await redis.zcard(queueKeys.waitingByTurn)).toBe(1);
  await redis.del(queueKeys.waitingByTurn);
});

test("a clock of Redis that was set back by days stops neither maintenance nor the takeover of dead workers' searches", async () => {
  const { redis } = context;
  // The leader died at that moment.
  await eventually(async () => (await redis.set("maintenance", "dead", "PX", 72 * 3_600_000)) === "OK");
  await redis.set(queueKeys.stallCheck, 1, "PX", 72 * 3_600_000);
  await eventually(async () => (await redis.pttl(queueKeys.stallCheck)) <= protocolTimes.stallCheckIntervalMs);
  expect(await redis.get("maintenance")).not.toBe("dead");
});

test.each(["", "a".repeat(64)])(
  "an overdue search whose hold Redis has lost is swept once, with the key '%s'",
  async (keyHash) => {
    const { redis } = context;
    const { organizationId, isReversed } = await newCharges();
    const requestId = newId("req");
    const entry = indexEntryOf({ organizationId, requestId, keyHash });
    await redis.zadd(holdIndexKey, 1_000, entry);
    await eventually(async () => (await redis.zscore(holdIndexKey, entry)) === null);
    // Further runs do not find it.
    await passSixMinutes();
    await eventually(isReversed);
    expect(lines.filter((line) => line.includes(requestId))).toHaveLength(1);
  },
);

test("a sweep that meets a locked organization ends before the lease of the leader, and ends the holds of all others", async () => {
  // Its connections, without maintenance.
  const sweeping = await openServers({ databaseSizeMax: 4, log: pino({ level: "silent" }) });
  onTestFinished(sweeping.close);
  const { redis, database } = sweeping;
  await whenReady(redis, 60_000);
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
  await asOwner(sweeping.ownerUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [locked.organizationId]);
    // On a busy machine one run may take longer for another reason.
    expect(await becomes(sweepsInTime)).toBe(true);
    await owner.query("commit");
  });
  await sweepHolds(sweeping);
  expect(await locked.open()).toBe(0);
});
