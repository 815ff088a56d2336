import { afterAll, beforeAll, expect, test } from "vitest";
import { z } from "zod";
import { DeliveryConfirmations } from "../../api/search/delivery.ts";
import { verifyLedger } from "../../commands/ledger.ts";
import { exitCodes } from "../../commands/run-command.ts";
import { processUrlOf } from "../../local/postgres.ts";
import { Shutdown } from "../../shared/concurrency/shutdown.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { decideSettlements } from "../../shared/credits/ledger.ts";
import { judgeSuspectCopies, listOpenGaps } from "../../shared/credits/ledger-gaps.ts";
import { keysOf, suspectCopiesKey } from "../../shared/credits/redis-keys.ts";
import { Settlement } from "../../shared/credits/settlement.ts";
import { readStoredBalances } from "../../shared/credits/stored-balances.ts";
import { type Database, openDatabase } from "../../shared/database/pool.ts";
import { newId } from "../../shared/ids.ts";
import { openLog } from "../../shared/log.ts";
import { openMetrics } from "../../shared/metrics.ts";
import { reconcileNextPage, recordGaps, reverseUndelivered } from "../../worker/reconcile.ts";
import { eventually } from "../harness/assertions/eventually.ts";
import { type CommandResult, readLine, runAdminHere } from "../harness/clients/admin.ts";
import { chargeOf } from "../harness/fixtures/charge-of.ts";
import { callerWith } from "../harness/fixtures/caller.ts";
import { createPayer } from "../harness/fixtures/payer.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { openFreshRedis } from "../harness/servers/open-redis.ts";
import { freshDatabase } from "../harness/servers/servers.ts";

/**
 * A replica of Postgres that lagged behind takes over. Each organization had 100 mils; the replica knows three searches of 5 mils
 * (version 4, 85 mils), and Redis four more that the old primary charged (version 8, 65 mils).
 */

const log = openLog({ name: "test", level: "silent" });
const metrics = openMetrics();
const lost = { redisVersion: 8, redisBalanceMils: 65, version: 4, balanceMils: 85, mils: 20 };

const { redis, server } = await openFreshRedis(afterAll);
const primary = await freshDatabase();
const replicaUrl = `${primary.url}_replica`;
const shutdown = new Shutdown();
let database: Database;
const losers: { id: string; copy: Record<string, string> }[] = [];

const ownerOf = (statement: string) => asOwner(replicaUrl, statement);
const onServer = (statement: string) => asOwner(new URL("/postgres", primary.url).href, statement);

/** Runs with a pool that is closed afterwards: a database with connections cannot be copied. */
async function onPrimary(use: (database: Database) => Promise<void>): Promise<void> {
  const closing = new Shutdown();
  const options = { name: "test", sizeMax: 2, log, shutdown: closing };
  await use(openDatabase({ url: processUrlOf(primary.url), ...options }));
  await closing.run(log);
}

beforeAll(async () => {
  const ids: string[] = [];
  await onPrimary(async (old) => {
    for (let made = 0; made < 10; made += 1) ids.push(await createPayer(old, 100));
    for (const id of ids) await search(old, id, 3);
  });
  const name = (url: string) => new URL(url).pathname.slice(1);
  await onServer(`create database ${name(replicaUrl)} template ${name(primary.url)}`);
  await onPrimary(async (old) => {
    for (const id of ids) await search(old, id, 4);
  });
  for (const id of ids) losers.push({ id, copy: await redis.hgetall(keysOf(id).balance) });
  await redis.flushall();
  database = openDatabase({ url: processUrlOf(replicaUrl), name: "test", sizeMax: 4, log, shutdown });
});
afterAll(async () => {
  await shutdown.run(log);
  await onServer(`drop database ${new URL(replicaUrl).pathname.slice(1)} with (force)`);
  await primary.drop();
});

/** The next organization that lost entries, with its copy in Redis. The others have none, so that a test finds only its own. */
async function loser(): Promise<string> {
  const next = losers.pop();
  if (next === undefined) throw new Error("no organization is left");
  await redis.hset(keysOf(next.id).balance, next.copy);
  return next.id;
}

/** Charges searches at the same time, so that they may share a batch. */
async function search(at: Database, organizationId: string, searches: number): Promise<void> {
  const settlement = new Settlement({ database: at, redis, metrics, log });
  const settle = async () => {
    const request = chargeOf(organizationId);
    const decision = await settlement.decide(request, 10_000);
    const { requestId } = request;
    const outcome = { kind: "answer" as const, requestId, body: Buffer.from("{}"), chargedMils: 5 };
    await settlement.publish({ request, decision, outcome, ifCharged: "end_hold" }, 10_000);
  };
  await Promise.all(Array.from({ length: searches }, settle));
}

const context = () => ({ database, redis, metrics, log });
const compare = () => reconcileNextPage(context(), { after: "", driftMils: 0 });
const copyOf = async (id: string) => (await readStoredBalances(redis, [id])).get(id);
const gapsOf = async (id: string) =>
  (await listOpenGaps(database, 100)).filter(({ organizationId }) => organizationId === id);

const environment = () => ({
  DATABASE_URL: processUrlOf(replicaUrl),
  REDIS_URL: server.url,
  SERP_PROVIDERS: "sandbox",
  OPERATOR_NAME: "ada",
});
/** Runs a command, again if a store did not answer in the command's time, as on a busy machine. */
async function admin(...words: string[]): Promise<CommandResult> {
  let result = await runAdminHere(words, environment());
  await eventually(async () => {
    if (result.exitCode === exitCodes.outOfReach) result = await runAdminHere(words, environment());
    return result.exitCode !== exitCodes.outOfReach;
  });
  return result;
}

test("a gap that charges of the new history have passed is recorded with its mils", async () => {
  const id = await loser();
  // One by one the new charges reach the version that Redis has, with the same balance, and pass it.
  for (let charged = 0; charged < 6; charged += 1) await search(database, id, 1);
  expect(await copyOf(id)).toEqual({ version: 10, balanceMils: 55 });
  await recordGaps(context());
  expect(await gapsOf(id)).toMatchObject([lost]);
  expect(await copyOf(id)).toEqual({ version: 10, balanceMils: 55 });
});

test.each(["charge", "refund"] as const)(
  "a gap that a single batch of charges has passed is recorded with its mils, also if a %s is the newest decision sent with them",
  async (kind) => {
    const id = await loser();
    const charges = Array.from({ length: 7 }, () => chargeOf(id));
    const [charged] = (await decideSettlements(database, charges)).values();
    const refund = { organizationId: id, requestId: newId("req"), wanted: "refund", reason: "swept" } as const;
    const [newest] = kind === "charge" ? [charged] : (await decideSettlements(database, [refund])).values();
    if (!charged || !newest) throw new Error("no decision");
    await settleHolds(redis, id, newest.balance, [], { before: charged.before });
    expect(await copyOf(id)).toEqual({ version: 11, balanceMils: 50 });
    await recordGaps(context());
    expect(await gapsOf(id)).toMatchObject([lost]);
  },
);

/** Who reverses the charges that Postgres still has: an API one by one, the reconciler all at once. */
const reversers = {
  async "an API"(organizationId: string): Promise<void> {
    const confirmations = new DeliveryConfirmations(context());
    const caller = callerWith({ organizationId });
    const undelivered = "select request_id from undelivered where organization_id = $1";
    for (const { request_id: requestId } of (await database.query(undelivered, [organizationId])).rows)
      await confirmations.reverse({ requestId, caller }, "caller_disconnected");
  },
  async "the reconciler"(organizationId: string): Promise<void> {
    const grow = "update undelivered set charged_at = charged_at - interval '6 minutes'";
    await ownerOf(`${grow} where organization_id = '${organizationId}'`);
    await reverseUndelivered(context());
  },
};

test.each(Object.entries(reversers))("a gap that reversals by %s have passed is recorded", async (_, reverse) => {
  const id = await loser();
  await redis.hset(keysOf(id).balance, { version: 5, balance: 80 });
  await reverse(id);
  expect(await copyOf(id)).toEqual({ version: 7, balanceMils: 100 });
  await recordGaps(context());
  const ofOneCharge = { redisVersion: 5, redisBalanceMils: 80, mils: 5 };
  expect(await gapsOf(id)).toMatchObject([{ ...lost, ...ofOneCharge }]);
});

test("the gap of an organization that searches no more is found by the comparison, before its copy is deleted", async () => {
  const id = await loser();
  await compare();
  expect(await copyOf(id)).toEqual({ version: 8, balanceMils: 65 });
  await recordGaps(context());
  expect(await gapsOf(id)).toMatchObject([lost]);
  expect(await copyOf(id)).toBeUndefined();
  await compare();
  await recordGaps(context());
  expect(await gapsOf(id)).toHaveLength(1);
});

test("messages of two workers that cross are no gap", async () => {
  const id = await createPayer(database, 100);
  const older = (await decideSettlements(database, [chargeOf(id)])).values().next().value;
  const newer = (await decideSettlements(database, [chargeOf(id)])).values().next().value;
  for (const decision of [newer, older])
    if (decision) await settleHolds(redis, id, decision.balance, [], { before: decision.before });
  expect(await redis.hkeys(suspectCopiesKey)).toContain(`${id}|3`);
  await recordGaps(context());
  expect(await gapsOf(id)).toEqual([]);
  expect(await redis.hkeys(suspectCopiesKey)).toEqual([]);
  expect(await copyOf(id)).toEqual({ version: 3, balanceMils: 90 });
});

test("while Postgres takes no record, the copy stays, and new charges hide nothing", async () => {
  const id = await loser();
  const args = "text[], text[], bigint[], bigint[], text[], bigint[], bigint[]";
  await ownerOf(`revoke execute on function record_ledger_gaps(${args}) from serpmill`);
  await compare();
  await expect(recordGaps(context())).rejects.toThrow(/permission denied/);
  expect(await copyOf(id)).toEqual({ version: 8, balanceMils: 65 });
  await search(database, id, 6);
  await expect(recordGaps(context())).rejects.toThrow(/permission denied/);
  await ownerOf(`grant execute on function record_ledger_gaps(${args}) to serpmill`);
  await recordGaps(context());
  expect(await gapsOf(id)).toMatchObject([lost]);
});

test("a worker that dies after the record and before it deletes the copy neither loses nor doubles the gap", async () => {
  const id = await loser();
  await compare();
  await redis.call("ACL", "SETUSER", "dies", "on", "nopass", "~*", "+@all", "-del", "-hdel");
  const dying = redis.duplicate({ username: "dies", password: "any" });
  await expect(judgeSuspectCopies(database, dying)).rejects.toThrow(/NOPERM|can't run this command/);
  dying.disconnect();
  expect(await gapsOf(id)).toMatchObject([lost]);
  expect(await copyOf(id)).toEqual({ version: 8, balanceMils: 65 });
  // The next one continues, while a charge of the new history comes.
  await search(database, id, 1);
  await recordGaps(context());
  expect(await gapsOf(id)).toMatchObject([lost]);
  expect(await copyOf(id)).toBeUndefined();
});

const report = z.object({ findings: z.array(z.object({ part: z.string(), found: z.string() })) });

test("verify and doctor name organization and mils until an operator closes the gap, and the audit trail keeps both", async () => {
  const id = await loser();
  await compare();
  await recordGaps(context());
  const [gap] = await gapsOf(id);
  const gapId = gap?.gapId ?? "";
  const found = expect.stringMatching(new RegExp(`^${gapId}: .* 20 mils`));
  expect((await verifyLedger(database, redis)).violations).toContainEqual(
    expect.objectContaining({ subject: id, found }),
  );
  // It reports a store that does not answer in time, and ends as usual.
  const doctor = async () => {
    let ledger: string[] = [];
    await eventually(async () => {
      const { findings } = report.parse(JSON.parse((await admin("doctor")).stdout));
      ledger = findings.filter(({ part }) => part === "ledger").map((one) => one.found);
      return ledger.length > 0;
    });
    return ledger.join("\n");
  };
  expect(await doctor()).toContain(`${id} 20 mils, ${gapId}`);
  expect(readLine((await admin("ledger", "gaps")).stdout)).toMatchObject({
    open: expect.arrayContaining([{ ...lost, gapId, orgId: id, seenAt: expect.any(String) }]),
  });

  expect((await admin("ledger", "gap-close", gapId)).exitCode).toBe(2);
  const closed = await admin("ledger", "gap-close", gapId, "--note", "corrected");
  expect(readLine(closed.stdout)).toEqual({ orgId: id, gapId, repeated: false });
  const again = await admin("ledger", "gap-close", gapId, "--note", "twice");
  expect(readLine(again.stdout)).toMatchObject({ repeated: true });
  expect(await admin("ledger", "gap-close", newId("gap"), "--note", "x")).toMatchObject({ exitCode: 1 });

  expect((await verifyLedger(database, redis)).violations.map(({ subject }) => subject)).not.toContain(id);
  expect(await doctor()).not.toContain(gapId);
  const { rows } = await database.query("select note from ledger_gaps where id = $1", [gapId]);
  expect(rows).toEqual([{ note: "corrected" }]);
  const trail = readLine((await admin("audit", "list", "--org", id)).stdout);
  const after = { redis_version: 8, redis_balance_mils: 65, version: 4, balance_mils: 85 };
  expect(trail).toMatchObject({
    entries: [
      { action: "ledger.gap_found", actorKind: "service", subject: gapId, after },
      { action: "ledger.gap_closed", actorKind: "operator", actor: "ada", subject: gapId },
    ],
  });
});

test("not even the owner may change or delete a gap, other than to close it", async () => {
  const id = await loser();
  await compare();
  await recordGaps(context());
  const [gap] = await gapsOf(id);
  await database.query("select close_ledger_gap($1, 'corrected')", [gap?.gapId]);
  for (const statement of [
    "update ledger_gaps set balance_mils = 0",
    "update ledger_gaps set note = 'x', closed_at = null where closed_at is not null",
    "delete from ledger_gaps",
    "truncate ledger_gaps",
  ])
    await expect(ownerOf(statement)).rejects.toThrow(/append only/);
  await expect(database.query("insert into ledger_gaps (id) values ('x')")).rejects.toThrow(/permission denied/);
});

test("a Redis that is wrong again and again leaves at most a hundred open gaps of an organization", async () => {
  const id = await createPayer(database, 100);
  for (let version = 2; version < 122; version += 1) {
    await redis.hset(keysOf(id).balance, { balance: 1, version });
    await compare();
    await recordGaps(context());
  }
  const { rows } = await database.query("select count(*) from ledger_gaps where organization_id = $1", [id]);
  expect(rows).toEqual([{ count: 100 }]);
  expect(await copyOf(id)).toBeUndefined();
});
