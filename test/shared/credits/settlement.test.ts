import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { defineHoldScripts } from "../../../shared/credits/holds.ts";
import { keysOf } from "../../../shared/credits/redis-keys.ts";
import { grantCredit } from "../../../shared/credits/ledger.ts";
import { openSettlement, type Settlement } from "../../../shared/credits/settlement.ts";
import type { Database } from "../../../shared/database/pool.ts";
import { newId } from "../../../shared/ids.ts";
import type { LocalServer } from "../../../shared/local/local-server.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { defineReplyScript, replyInboxKey } from "../../../shared/queue/replies.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { freshRedis } from "../../harness/servers/servers.ts";

/** Settling while Redis refuses a part of what it is given. */

// Far longer than the test takes, and short enough that a search which waits for another ends.
const retryForMs = 60_000;
const trace = { provider: "none", from: "provider" as const, calls: [], costMicroUsd: 0, queueMs: 0, runMs: 0 };
const key = { hash: "a".repeat(64), fingerprint: "query" };

let server: LocalServer;
let redis: Redis;
let database: Database;
let close: () => Promise<void>;
let settlement: Settlement;
beforeAll(async () => {
  server = await freshRedis();
  redis = new Redis(server.url);
  defineHoldScripts(redis);
  defineReplyScript(redis);
  ({ database, close } = await openFreshDatabase());
  const log = openLog({ name: "test", level: "silent" });
  settlement = openSettlement({ database, redis, metrics: openMetrics(), log });
});
afterAll(async () => {
  redis.disconnect();
  await Promise.all([server.stop(), close()]);
});

async function organization(): Promise<string> {
  const made = await createOrganization(database, { name: "Test", planCode: "payg" });
  const organizationId = made?.organizationId ?? "";
  await grantCredit(database, { organizationId, grantId: newId("grant"), mils: 100, reason: "test" });
  return organizationId;
}

/** Settles an answered search. Its reply goes to an inbox of the organization. */
const settle = (organizationId: string, given: { key?: typeof key } = {}) => {
  const requestId = newId("req");
  return settlement.settle({
    request: { organizationId, requestId, wanted: "charge", priceMils: 5, key: given.key },
    retryForMs,
    toOutcome: ({ chargedMils }) => ({ kind: "answer", requestId, body: Buffer.from("{}"), chargedMils }),
    reply: { inbox: replyInboxKey(organizationId), trace },
    ifCharged: "end_hold",
  });
};

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
