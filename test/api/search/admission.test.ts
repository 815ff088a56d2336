import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import { AdmissionControl } from "../../../api/search/admission.ts";
import { changeLimits } from "../../../api/organizations/limits.ts";
import { PaidAnswers } from "../../../api/search/idempotency.ts";
import { CreditCheck } from "../../../api/search/credit-check.ts";
import { newSearchRequest, type SearchRequest } from "../../../api/search/search-request.ts";
import { Shedding } from "../../../api/search/shedding.ts";
import { decideSettlements, grantCredit } from "../../../shared/credits/ledger.ts";
import { compressAnswer } from "../../../shared/compress-answer.ts";
import { keysOf, suspectCopiesKey } from "../../../shared/credits/redis-keys.ts";
import { newId } from "../../../shared/ids.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { createOrganization } from "../../../shared/organizations/organizations.ts";
import { Clock } from "../../../shared/redis/clock.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { openFreshDatabase } from "../../harness/servers/open-database.ts";
import { openFreshRedis } from "../../harness/servers/open-redis.ts";
import { chargeOf } from "../../harness/fixtures/charge-of.ts";

/** Admission at moments that no caller can choose. */

const gateKey = "gate";

/** Admits every search, and holds the first back between its look into Postgres and its step in Redis. */
class Gate extends Shedding {
  readonly #redis: Redis;
  #reached = Promise.withResolvers<void>();
  #isShut: boolean;

  constructor(redis: Redis, { isShut }: { isShut: boolean }) {
    const never = new AbortController().signal;
    super({ redis, clock: new Clock(), draining: never, stopping: never });
    this.#redis = redis;
    this.#isShut = isShut;
  }

  get reached(): Promise<void> {
    return this.#reached.promise;
  }

  override refusal(): undefined {
    if (!this.#isShut) return;
    this.#isShut = false;
    // Redis handles what is sent on this connection afterwards once something is pushed.
    void this.#redis.blpop(gateKey, 0);
    this.#reached.resolve();
  }
}

const { redis, server } = await openFreshRedis(afterAll);
const opener = new Redis(server.url);
const { database } = await openFreshDatabase(afterAll);
afterAll(() => opener.disconnect());

const log = openLog({ name: "test", level: "silent" });

function openAdmission(shedding: Gate): AdmissionControl {
  const metrics = openMetrics();
  const paidAnswers = new PaidAnswers({ database, metrics });
  return new AdmissionControl({ redis, database, shedding, paidAnswers, metrics, log, topupUrl: "none" });
}

/** A search under a key, by an organization with credit for one. */
async function lastSearch(): Promise<SearchRequest> {
  const made = await createOrganization(database, { name: "Test", planCode: "payg" });
  if (!made) throw new Error("there is no plan payg");
  const { organizationId, plan } = made;
  await grantCredit(database, { organizationId, grantId: newId("grant"), mils: plan.priceMils, reason: "test" });
  return newSearchRequest({
    requestId: newId("req"),
    caller: { organizationId, tokenId: "tok_1", scopes: ["search"], suspended: false, plan },
    query: query(),
    disconnected: new AbortController().signal,
    deadlineStartsAtMs: performance.now(),
    timeoutMs: 120_000,
    idempotencyKey: "the last credit",
  });
}

/** Settles the first search under the key of a repeat, as a worker does. @returns its answer. */
async function payFor({ caller, key }: SearchRequest): Promise<{ requestId: string; body: Buffer }> {
  const first = { requestId: newId("req"), body: Buffer.from("the answer") };
  const { organizationId, plan } = caller;
  const answer = await compressAnswer(first.body);
  const paid = { requestId: first.requestId, priceMils: plan.priceMils, answer, ...(key && { key }) };
  await decideSettlements(database, [chargeOf(organizationId, paid)]);
  return first;
}

test("a repeat gets its answer although Redis lost its key, which paid with the last credit after the repeat was looked up", async () => {
  const shedding = new Gate(redis, { isShut: true });
  const repeat = await lastSearch();
  const admission = openAdmission(shedding).admit(repeat);
  await shedding.reached;
  const first = await payFor(repeat);
  await opener.rpush(gateKey, "open");
  expect(await admission).toMatchObject({ outcome: "replayed", ...first });
});

test.each([
  { copy: "shows a limit as reached", spent: (version: number) => ({ spent: `${version}:99999:5:5:99999` }) },
  { copy: "lacks what was spent", spent: () => ({}) },
])("a search is refused at once if a copy that $copy comes from entries that Postgres lost", async ({ spent }) => {
  const search = await lastSearch();
  const { organizationId, plan } = search.caller;
  const limits = { organization: { dayMils: plan.priceMils } };
  await changeLimits(database, "organization", organizationId, { dayMils: plan.priceMils, monthMils: null });
  await redis.hset(keysOf(organizationId).balance, { balance: 100, version: 9, ...spent(9) });

  const admission = openAdmission(new Gate(redis, { isShut: false }));
  const admitted = admission.admit({ ...search, caller: { ...search.caller, limits } });
  await expect(admitted).rejects.toMatchObject({ code: "unavailable", details: { reason: "balance_unreadable" } });
  expect(await redis.hkeys(suspectCopiesKey)).toContain(`${organizationId}|9`);
});

test.each([
  { period: "day", renewsAt: "2030-02-01T00:00:00.000Z" },
  { period: "month", renewsAt: "2030-02-01T00:00:00.000Z" },
] as const)("a limit of a $period renews when its period ends by the clock of Postgres", ({ period, renewsAt }) => {
  const check = new CreditCheck({ redis, database, topupUrl: "none" });
  const limit = { scope: "organization", period } as const;
  const shown = { window: { used: 0, leftMs: 0 }, limit, spentMils: 5, heldMils: 0, version: 1 };
  const credit = {
    balance: { balanceMils: 5, version: 1, spending: "21945:5:5:21946" },
    token: undefined,
    decided: [],
  };
  const { details } = check.error({}, 5, { outcome: "spending_limit", ...shown }, credit);
  expect(details).toMatchObject({ period, renewsAt });
});
