import { afterAll, expect, test } from "vitest";
import { reverseCharges } from "../../shared/credits/deliveries.ts";
import { setKeptDays } from "../../shared/credits/kept-answers.ts";
import { setPlan } from "../../shared/credits/plans.ts";
import { publishIdentityChange } from "../../shared/organizations/organizations.ts";
import { searchJob } from "../../shared/queue/search-job.ts";
import { createQueue } from "../../shared/queue/search-queue.ts";
import { summed } from "../harness/assertions/metrics.ts";
import { type Answer, Service } from "../harness/processes/service.ts";
import { asOwner } from "../harness/servers/as-owner.ts";
import { startProxy } from "../harness/servers/proxy.ts";
import { reply, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";
import { loggedSearches } from "../harness/servers/logged-searches.ts";
import { operator } from "../harness/fixtures/operator.ts";

/** Answers that an organization keeps, and the age of an answer that callers choose. */

const stub = await startSerperStub(afterAll);
const service = await Service.start({
  apis: 2,
  environment: { ...stub.settings, KEPT_ANSWERS_DAYS: "30", SEARCH_CACHE_SECONDS: "60", LOG_LEVEL: "debug" },
  end: afterAll,
});
const postgres = await startProxy(service.databaseUrl, afterAll);
afterAll(async () => {
  await service.rest();
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

async function keeper(terms = {}) {
  const made = await service.organization({ creditMils: 100, terms: { cachedPriceMils: 2, ...terms } });
  await setKeptDays(service.database, { actor: operator, organizationId: made.organizationId }, 10);
  return made;
}

const callsFor = (keyword: string) => stub.requests.filter(({ body }) => body.q === keyword).length;
const cost = ({ status, body }: Answer) => [status, body.creditsCharged];

/** Until the answer of a search is kept and its charge final. */
async function isReadable(answer: Answer): Promise<void> {
  await service.until(async () => {
    const { rows } = await service.database.query("select from readable_answers where request_id = $1", [
      answer.requestId,
    ]);
    return rows.length === 1;
  });
}

test("an answer that was paid for answers again at the cached price, in any format, until a fresh search refreshes it", async () => {
  const { organizationId, token } = await keeper();
  const ask = (fields: object = {}) => service.search(token, { keyword: "kept", ...fields });
  const first = await ask({ maxAgeSeconds: 3_600, include: ["fetchedAt", "answeredBy"] });
  expect([cost(first), first.body.creditsRemaining]).toEqual([[200, 5], 95]);
  await isReadable(first);
  const hit = await ask({ maxAgeSeconds: 3_600, include: ["fetchedAt", "answeredBy"] });
  const { requestId: _, ...same } = first.body;
  expect(hit.body).toEqual({ ...same, requestId: hit.requestId, creditsCharged: 2, creditsRemaining: 93 });
  expect(Date.parse(hit.body.fetchedAt)).toBeLessThanOrEqual(Date.now());
  const compact = await ask({ maxAgeSeconds: 3_600, format: "compact", targetDomain: "example.com" });
  expect([cost(compact), callsFor("kept")]).toEqual([[200, 2], 1]);
  const ledger = await service.ledgerOf(organizationId);
  expect(ledger.map(({ mils }) => mils)).toEqual([100, -5, -2, -2]);
  await service.until(async () => (await service.holdsOf(organizationId)).open === 0);
  expect((await service.usage(token)).body.creditBalanceMils).toBe(91);
  expect(await summed(service.workers, 'answered_searches_total{from="kept"}')).toBe(2);
  const logged = async () => (await loggedSearches(service.database, organizationId)).map(({ work }) => work?.source);
  await service.until(async () => (await logged()).length === 3);
  expect(await logged()).toEqual(["provider", "kept", "kept"]);

  stub.otherwise = reply(200, { organic: [{ title: "new", link: "https://new.example/" }] });
  const fresh = await ask({ maxAgeSeconds: 0, include: ["fetchedAt"] });
  expect([cost(fresh), callsFor("kept")]).toEqual([[200, 5], 2]);
  expect(Date.parse(fresh.body.fetchedAt)).toBeGreaterThan(Date.parse(first.body.fetchedAt));
  await isReadable(fresh);
  stub.otherwise = tenOrganic;
  const refreshed = await ask({ maxAgeSeconds: 3_600, include: ["fetchedAt"] });
  expect([cost(refreshed), refreshed.body.results, refreshed.body.fetchedAt]).toEqual([
    [200, 2],
    fresh.body.results,
    fresh.body.fetchedAt,
  ]);
});

test("without maxAgeSeconds, for another organization, and without kept answers, a search costs the whole price", async () => {
  const { token } = await keeper();
  const [other, without] = [await keeper(), await service.organization({ terms: { cachedPriceMils: 2 } })];
  const body = { keyword: "whole price" };
  await isReadable(await service.search(token, body));
  expect(cost(await service.search(token, body))).toEqual([200, 5]);
  for (const one of [other, without]) {
    const asked = await service.search(one.token, { ...body, maxAgeSeconds: 86_400 });
    expect(cost(asked)).toEqual([200, 5]);
  }
  // All of these came from the operator's cache, which no caller has to accept.
  expect(callsFor("whole price")).toBe(1);
  expect(cost(await service.search(without.token, { ...body, maxAgeSeconds: 0 }))).toEqual([200, 5]);
  expect(callsFor("whole price")).toBe(2);
  // A search that asks anew joins a call that runs.
  const release = stub.hold();
  const asking = [token, other.token].map((one) => service.search(one, { keyword: "joined", maxAgeSeconds: 0 }));
  await service.untilRunning(2);
  release();
  expect((await Promise.all(asking)).map(cost)).toEqual([
    [200, 5],
    [200, 5],
  ]);
  expect(callsFor("joined")).toBe(1);
});

test("a key replays the bytes of its first answer whatever their age, and another age under the key is another query", async () => {
  const { organizationId, token } = await keeper();
  const body = { keyword: "keyed", maxAgeSeconds: 3_600 };
  const first = await service.search(token, body, { key: "first" });
  await isReadable(first);
  const hit = await service.search(token, body, { key: "hit" });
  expect([cost(first), cost(hit)]).toEqual([
    [200, 5],
    [200, 2],
  ]);
  for (const [key, { text }] of Object.entries({ first, hit }))
    expect(await service.search(token, body, { key, api: 1 })).toMatchObject({ status: 200, text });
  const reused = await service.search(token, { ...body, maxAgeSeconds: 0 }, { key: "hit" });
  expect(reused).toMatchObject({ status: 400, body: { error: { details: { reason: "idempotency_key_reused" } } } });
  expect((await service.ledgerOf(organizationId)).map(({ mils }) => mils)).toEqual([100, -5, -2]);
});

test("an answer whose charge was reversed is not read, and a hit whose caller leaves is given back", async () => {
  const { organizationId, token } = await keeper();
  const body = { keyword: "taken back", maxAgeSeconds: 3_600 };
  // The API cannot confirm the delivery, so the charge is reversed, as the reconciler does.
  const api = await service.startApi({ DATABASE_URL: postgres.url });
  const options = { api: service.apis.indexOf(api) };
  await isReadable(await service.search(token, { keyword: "warm" }, options));
  const release = stub.hold();
  const search = service.search(token, body, options);
  await service.until(async () => callsFor("taken back") === 1);
  postgres.cut();
  release();
  const given = await search;
  expect(cost(given)).toEqual([200, 5]);
  await reverseCharges(service.database, [{ organizationId, requestId: given.requestId }], "undelivered");
  expect(cost(await service.search(token, body))).toEqual([200, 5]);
  postgres.mend();
  const next = await service.search(token, { ...body, maxAgeSeconds: 0 });
  await isReadable(next);
  expect(cost(await service.search(token, body))).toEqual([200, 2]);

  // While nothing is decided, the caller of a hit leaves.
  await asOwner(service.databaseUrl, async (owner) => {
    await owner.query("begin");
    await owner.query("select from organizations where id = $1 for update", [organizationId]);
    const leave = new AbortController();
    const left = service.search(token, body, { signal: leave.signal }).catch(() => "left");
    // The worker has the search by then.
    const waiting = "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";
    await service.until(async () => (await owner.query(waiting)).rows.length > 0);
    leave.abort();
    expect(await left).toBe("left");
    await service.workers[0]?.line("the caller of a search disconnected");
    await owner.query("rollback");
  });
  await service.rest();
  // 100 - 4 * 5 - 2, and the 5 of the answer that was given back.
  expect((await service.usage(token)).body.creditBalanceMils).toBe(83);
});

test("a hit costs the cached price of the plan that admitted it, per page where the price is, and needs credit for the whole one", async () => {
  const { organizationId, token } = await keeper({ priceMils: 5, pricePerPageMils: 5, cachedPriceMils: 1 });
  const body = { keyword: "priced", depth: 20, maxAgeSeconds: 3_600 };
  const fresh = await service.search(token, body);
  await isReadable(fresh);
  expect([cost(fresh), cost(await service.search(token, body))]).toEqual([
    [200, 10],
    [200, 2],
  ]);
  const { rows } = await service.database.query("select plan_code as code from organizations where id = $1", [
    organizationId,
  ]);
  const terms = { windowLimit: 1_000, windowSeconds: 60, concurrency: 10, operations: ["serp.search" as const] };
  await setPlan(service.database, { ...terms, code: rows[0].code, priceMils: 80, cachedPriceMils: 3 });
  await publishIdentityChange(service.redis);
  await service.until(async () => cost(await service.search(token, body))[1] === 3);
  await setPlan(service.database, { ...terms, code: rows[0].code, priceMils: 86, cachedPriceMils: 3 });
  await publishIdentityChange(service.redis);
  await service.until(async () => (await service.search(token, body)).status === 402);
});

test("a second run that meets a kept answer follows the charge of the first one, and says so in its answer", async () => {
  const { token, organizationId } = await keeper();
  const body = { keyword: "twice", maxAgeSeconds: 3_600 };
  const queue = createQueue({ url: service.redisServer.url });
  const release = stub.hold();
  const search = service.search(token, body);
  await service.until(async () => callsFor("twice") === 1);
  const job = (await queue.getActive()).find(({ data }) => searchJob.parse(data).query.keyword === "twice");
  // It might have needed no lease.
  expect(job?.data.flight).toBeUndefined();
  release();
  const first = await search;
  await isReadable(first);
  await service.redis.del("inbox:again");
  await queue.add("search", { ...job?.data, inbox: "inbox:again" }, { jobId: "again", removeOnComplete: true });
  await service.until(async () => (await service.redis.exists("inbox:again")) === 1);
  const [[, fields] = ["", []]] = await service.redis.xrange("inbox:again", "-", "+");
  expect(JSON.parse(fields[3] ?? "")).toEqual(first.body);
  await queue.close();
  expect((await service.ledgerOf(organizationId)).map(({ mils }) => mils)).toEqual([100, -5]);
});
