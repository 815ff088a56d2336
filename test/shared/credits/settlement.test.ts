import { zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { Settlement } from "../../../shared/credits/settlement.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { issueToken } from "../../../api/tokens/tokens.ts";
import { replyInboxKey } from "../../../shared/queue/replies.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { asOwner } from "../../harness/servers/as-owner.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";
import { createPayer } from "../../harness/fixtures/payer.ts";

/** Settling while Redis refuses a part of what it is given, and while rows of some organizations are locked. */

// Far longer than the test takes, and short enough that a search which waits for another ends.
const retryForMs = 60_000;
const noCalls = { provider: "none", from: "provider" as const, calls: [], costMicroUsd: 0 };
const trace = { worker: "worker_1", ...noCalls, queueMs: 0, runMs: 0 };
const key = { hash: "a".repeat(64), fingerprint: "query" };
const answer = zstdCompressSync("an answer");

const { redis } = await openFreshRedis(afterAll);
const { database, url } = await openFreshDatabase(afterAll);
const log = openLog({ name: "test", level: "silent" });
const metrics = openMetrics();
const settlement = new Settlement({ database, redis, metrics, log });

const organization = () => createPayer(database, 100);

/** Settles an answered search. Its reply goes to an inbox of the organization. */
async function settle(
  organizationId: string,
  given: { key?: typeof key; requestId?: string; tokenId?: string; retryForMs?: number } = {},
) {
  const { retryForMs: retryDecisionForMs = retryForMs, ...search } = given;
  const request = chargeOf(organizationId, { ...search, answer: given.key && answer });
  const { requestId } = request;
  const decision = await settlement.decide(request, retryDecisionForMs);
  const { chargedMils } = decision;
  const outcome = { kind: "answer" as const, requestId, body: Buffer.from("{}"), chargedMils };
  const reply = { inbox: replyInboxKey(organizationId), trace };
  await settlement.publish({ request, decision, outcome, reply, ifCharged: "end_hold" }, retryForMs);
  return decision;
}

const repliesTo = (organizationId: string) => redis.xlen(replyInboxKey(organizationId));

test("a failing script of one organization delays no other organization and sends no reply twice", async () => {
  const [broken, other] = [await organization(), await organization()];
  await redis.set(keysOf(broken).holds, "not a hash");
  let brokenEnded = false;
  const brokenSearches = [settle(broken), settle(broken, { key })];
  const allBroken = Promise.all(brokenSearches).finally(() => {
    brokenEnded = true;
  });

  // Others settle meanwhile, in the batch of the failing ones and in later batches.
  for (const given of [{}, { key }, {}]) expect(await settle(other, given)).toMatchObject({ kind: "charge" });
  expect(await repliesTo(other)).toBe(3);
  expect(brokenEnded).toBe(false);

  // The replies do not depend on the script.
  await eventually(async () => (await repliesTo(broken)) === 2);
  await redis.del(keysOf(broken).holds);
  await allBroken;
  await settlement.idle();
  expect([await repliesTo(broken), await repliesTo(other)]).toEqual([2, 3]);
  expect(await redis.hmget(keysOf(broken).balance, "balance", "version")).toEqual(["90", "3"]);
});

test("a reply that Redis refuses is sent once its inbox accepts it, and the searches beside it are sent once", async () => {
  const [refused, other] = [await organization(), await organization()];
  await redis.set(replyInboxKey(refused), "not a stream");
  const [late] = [settle(refused), await settle(other)];
  expect(await repliesTo(other)).toBe(1);
  await redis.del(replyInboxKey(refused));
  await late;
  expect([await repliesTo(refused), await repliesTo(other)]).toEqual([1, 1]);
});

/** An organization whose token has a limit, so that its charges change the row of the token too. */
async function limitedOrganization() {
  const organizationId = await organization();
  const tokenId = (await issueToken(database, organizationId))?.tokenId ?? "";
  await changeLimits(database, "token", tokenId, { monthMils: 1_000 });
  return { organizationId, tokenId };
}

/** How many batches failed, and how many were timed. */
async function countBatches(): Promise<{ failed: number; timed: number }> {
  const [failed, timed] = [await metrics.settlementRetries.get(), await metrics.settlementBatch.get()];
  const ofCount = timed.values.find(({ metricName }) => metricName === "settlement_batch_duration_seconds_count");
  return { failed: failed.values[0]?.value ?? 0, timed: ofCount?.value ?? 0 };
}

/** The mils of each entry of an organization's ledger. */
async function entriesOf(organizationId: string): Promise<number[]> {
  const text = "select amount_mils from ledger_entries where organization_id = $1 order by version";
  const { rows } = await database.query(text, [organizationId]);
  return rows.map(({ amount_mils: mils }) => mils);
}

test.each([
  ["organizations", "id"],
  ["tokens", "organization_id"],
])(
  "while rows of %s are locked, searches of other organizations settle; those of the locked ones settle afterwards, once",
  async (table, column) => {
    // More than may try to get their locks at once.
    const locked = await Promise.all(Array.from({ length: 4 }, limitedOrganization));
    const others = await Promise.all([organization(), organization()]);
    const ids = locked.map(({ organizationId }) => organizationId);
    let ended = 0;
    const waiting: Promise<unknown>[] = [];
    await asOwner(url, async (holder) => {
      await holder.query("begin");
      await holder.query(`select from ${table} where ${column} = any($1) for update`, [ids]);
      for (let round = 0; round < 5; round += 1) {
        for (const { organizationId, tokenId } of locked)
          waiting.push(settle(organizationId, { tokenId }).finally(() => (ended += 1)));
        await Promise.all(others.map((id) => settle(id)));
      }
      expect(ended).toBe(0);
      await holder.query("rollback");
    });
    await Promise.all(waiting);
    await settlement.idle();
    for (const id of [...ids, ...others]) expect(await entriesOf(id)).toEqual([100, -5, -5, -5, -5, -5]);
  },
);

test("a search that ends while its database is closed and then missing, as for a restore, settles once it is back", async () => {
  const id = await organization();
  const name = new URL(url).pathname.slice(1);
  await asOwner(Object.assign(new URL(url), { pathname: "/postgres" }).href, async (owner) => {
    await owner.query(`alter database ${name} allow_connections false`);
    await owner.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
    const settled = settle(id);
    const retries = async () => {
      const { failed } = await countBatches();
      await Promise.race([settled, eventually(async () => (await countBatches()).failed > failed + 2)]);
    };
    try {
      await retries();
      await owner.query(`alter database ${name} rename to ${name}_away`);
      await retries();
      await owner.query(`alter database ${name}_away rename to ${name}`);
    } finally {
      await owner.query(`alter database ${name} allow_connections true`);
    }
    await settled;
  });
  expect(await entriesOf(id)).toEqual([100, -5]);
});

test("a search whose organization stays locked is given up when its time is over, and settles once when it is tried again", async () => {
  const id = await organization();
  const requestId = newId("req");
  const before = await countBatches();
  await asOwner(url, async (holder) => {
    await holder.query("begin");
    await holder.query("select from organizations where id = $1 for update", [id]);
    const patient = settle(id);
    await expect(settle(id, { requestId, retryForMs: 300 })).rejects.toThrow("timeout");
    await holder.query("rollback");
    await patient;
  });
  for (const isNew of [true, false]) expect(await settle(id, { requestId })).toMatchObject({ kind: "charge", isNew });
  expect(await entriesOf(id)).toEqual([100, -5, -5]);
  // The three that settled, and each attempt that met the lock.
  const after = await countBatches();
  expect(after.failed).toBeGreaterThan(before.failed);
  expect(after.timed - before.timed).toBe(3 + after.failed - before.failed);
});

test("for how long Postgres decides nothing counts also for an organization that was locked, but not the lock", async () => {
  const organizationId = await organization();
  const retries = async () => (await metrics.settlementRetries.get()).values[0]?.value ?? 0;
  const before = await retries();
  await asOwner(url, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [organizationId]);
    await owner.query(`create function refuse_writes() returns trigger language plpgsql
      as $$ begin raise 'No space left on device' using errcode = 'disk_full'; end $$`);
    await owner.query("create trigger no_space before insert on ledger_entries execute function refuse_writes()");
    const settled = settle(organizationId);
    await eventually(async () => (await retries()) > before);
    expect(settlement.failingForMs).toBe(0);
    await owner.query("commit");
    await eventually(async () => settlement.failingForMs > 0);
    await owner.query("drop function refuse_writes cascade");
    expect(await settled).toMatchObject({ kind: "charge" });
  });
  expect(settlement.failingForMs).toBe(0);
});
