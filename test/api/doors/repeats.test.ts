import { afterAll, expect, test } from "vitest";
import { Repeats } from "../../../api/doors/doors.ts";
import { PaidAnswers } from "../../../api/search/idempotency.ts";
import { readQuery } from "../../../shared/query/query.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { Exposition, unpaidCalls } from "../../harness/assertions/metrics.ts";
import { callerWith } from "../../harness/fixtures/caller.ts";
import { type Organization, Service } from "../../harness/processes/service.ts";
import { refusal, startSerperStub, tenOrganic } from "../../harness/stubs/serper-stub.ts";

/** What a client's patience and its retries cost. */

const patienceMs = 1_000;

const stub = await startSerperStub(afterAll);
const service = await Service.start({
  apis: 0,
  environment: { ...stub.settings, COMPAT_DOORS: "searxng" },
  end: afterAll,
});
// The first one waits for as long as a busy machine takes.
for (const ms of [60_000, patienceMs]) await service.startApi({ COMPAT_PATIENCE_MS: `searxng=${ms}` });
await service.startApi({ COMPAT_PATIENCE_MS: "searxng=60000", SEARCH_DEADLINE_MS: "1000" });

const send = ({ token }: Organization, fields: string, api: number, signal?: AbortSignal) =>
  service.send(`/searxng/search?${fields}`, {
    api,
    headers: { authorization: `Bearer ${token}` },
    ...(signal && { signal }),
  });
const ask = (payer: Organization, q: string, api = 0, signal?: AbortSignal) =>
  send(payer, new URLSearchParams({ q, format: "json" }).toString(), api, signal);

const chargesOf = async ({ organizationId }: Organization) =>
  (await service.ledgerOf(organizationId)).filter(({ kind }) => kind === "charge").length;

const openOf = async ({ organizationId }: Organization) => (await service.holdsOf(organizationId)).open;

async function valueAt(api: number, series: string): Promise<number | undefined> {
  const process = service.apis[api];
  if (!process) throw new Error(`there is no API ${api}`);
  return (await Exposition.of(process)).value(series);
}

/** How many searches of an API have waited for another one under their key. */
const waitingAt = async (api: number) => (await valueAt(api, 'admissions_total{outcome="waiting"}')) ?? 0;

/** How many requests of an API ended with a status, as the metrics have it. */
const endedAt = async (api: number, status: number) =>
  (await valueAt(api, `http_request_duration_seconds_count{route="/searxng/search",status="${status}"}`)) ?? 0;

test("a search that outlasts the client's patience is charged once, and the client's retry gets its answer for nothing", async () => {
  const payer = await service.organization();
  const release = stub.hold();
  const impatient = await ask(payer, "slow", 1);
  expect({ status: impatient.status, code: impatient.body.code }).toEqual({ status: 504, code: "engine_timeout" });
  expect(impatient.body.details).toEqual({ reason: "still_running", timeoutMs: patienceMs, retryAfterMs: 1_000 });
  expect(impatient.body.error).toContain("within 60 s of its start");
  expect(impatient.headers.get("retry-after")).toBe("1");
  expect(await openOf(payer)).toBe(1);

  release();
  await service.until(async () => (await openOf(payer)) === 0);
  const retry = await ask(payer, "slow");
  expect({ status: retry.status, results: retry.body.results.length }).toEqual({ status: 200, results: 10 });
  expect(retry.headers.get("idempotency-replayed")).toBe("true");
  expect(retry.requestId).toBe(impatient.requestId);
  expect(await chargesOf(payer)).toBe(1);
});

test("a search that goes on without its client counts as a disconnect, and one that ran out of time as a failure", async () => {
  const payer = await service.organization();
  const before = await endedAt(1, 499);
  const release = stub.hold();
  expect((await ask(payer, "counted", 1)).status).toBe(504);
  await service.until(async () => (await endedAt(1, 499)) === before + 1);
  expect((await ask(payer, "out of time", 2)).status).toBe(504);
  await service.until(async () => (await endedAt(2, 504)) === 1);
  expect([await endedAt(1, 504), await endedAt(2, 499)]).toEqual([0, 0]);
  release();
});

test("a retry that comes while the search still runs joins it", async () => {
  const payer = await service.organization();
  const before = stub.requests.length;
  const release = stub.hold();
  const impatient = await ask(payer, "joined", 1);
  const waiting = await waitingAt(0);
  const retry = ask(payer, "joined");
  await service.until(async () => (await waitingAt(0)) === waiting + 1);
  release();
  const answer = await retry;
  expect([impatient.status, answer.status]).toEqual([504, 200]);
  expect(stub.requests.length - before).toBe(1);
  expect(await chargesOf(payer)).toBe(1);
});

test("a client that hangs up and never repeats has paid", async () => {
  const payer = await service.organization();
  const release = stub.hold();
  const client = new AbortController();
  const asking = ask(payer, "left", 0, client.signal).catch(() => "gone");
  await service.until(async () => (await openOf(payer)) === 1);
  client.abort();
  expect(await asking).toBe("gone");
  release();
  await service.until(async () => (await openOf(payer)) === 0);
  expect(await chargesOf(payer)).toBe(1);
  expect(await unpaidCalls(service)).toBe(0);
});

test("a search that fails after the client's patience costs nothing, and a retry searches again", async () => {
  const payer = await service.organization();
  const release = stub.hold(refusal(400, "No such query"));
  expect((await ask(payer, "failing", 1)).status).toBe(504);
  release();
  await service.until(async () => (await openOf(payer)) === 0);
  expect(await chargesOf(payer)).toBe(0);
  stub.otherwise = tenOrganic;
  expect((await ask(payer, "failing")).status).toBe(200);
  expect(await chargesOf(payer)).toBe(1);
});

test("the same search by another token is another search, and so is another search by the same token", async () => {
  const payer = await service.organization();
  const other = await service.organization();
  const ids = [await ask(payer, "mine"), await ask(other, "mine"), await ask(payer, "mine too")];
  expect(new Set(ids.map(({ requestId }) => requestId)).size).toBe(3);
  expect([await chargesOf(payer), await chargesOf(other)]).toEqual([2, 1]);
});

const spellings = [
  "q=all+together&format=json",
  "format=json&q=all%20together",
  "q=+all+together+&format=json",
  "q=all+together&format=json&language=all",
  "q=all+together&format=json&language=EN",
  "q=all+together&format=json&pageno=1&engines=google",
];

test("searches sent together by one token are one search, whichever API takes them and however they are spelled", async () => {
  const payer = await service.organization();
  const answers = await Promise.all(spellings.map((fields, at) => send(payer, fields, at % 2)));
  expect(new Set(answers.map(({ requestId }) => requestId)).size).toBe(1);
  expect(await chargesOf(payer)).toBe(1);
});

/** The keys that repeats of a search would get at these times after its start, without what Redis remembers for seconds. */
async function keysAfter(payer: Organization, keyword: string, ...afterMs: number[]) {
  const { redis, database } = service;
  const paidAnswers = new PaidAnswers({ database, metrics: openMetrics() });
  const caller = callerWith(payer);
  const keys = [];
  for (const ms of afterMs) {
    const windows = await redis.keys(`{${payer.organizationId}}:door:*`);
    if (windows.length > 0) await redis.del(windows);
    const clock = { now: () => Date.now() + ms };
    const repeats = new Repeats({ redis, paidAnswers }, clock);
    keys.push(await repeats.keyOf(caller, "searxng", readQuery({ keyword, depth: 10 })));
  }
  return keys;
}

test("a repeat within a minute of the start has the key that has paid, in whichever window it falls, even if Redis lost everything, and none after that", async () => {
  const payer = await service.organization();
  await ask(payer, "remembered");
  await service.rest();
  await service.redis.flushall();
  const [now, ...others] = await keysAfter(payer, "remembered", 0, 15_000, 30_000, 45_000, 55_000, 61_000, 130_000);
  expect(others.map((key) => key === now)).toEqual([true, true, true, true, false, false]);
});

test("a repeat within a minute has the key of the search that still runs", async () => {
  const payer = await service.organization();
  const release = stub.hold();
  const asking = ask(payer, "running");
  await service.until(async () => (await openOf(payer)) === 1);
  const [now, ...others] = await keysAfter(payer, "running", 0, 20_000, 40_000, 55_000, 61_000);
  expect(others.map((key) => key === now)).toEqual([true, true, true, false]);
  release();
  await asking;
});

test("a repeat has the key of its search at an API whose clock is behind", async () => {
  const payer = await service.organization();
  await ask(payer, "behind");
  const [now, ...others] = await keysAfter(payer, "behind", 0, -10_000, -20_000, -30_000, -40_000, -50_000, -59_000);
  expect(others.map((key) => key === now)).toEqual(others.map(() => true));
});

test("the failures of a door begin at 0 in the metrics, so that an increase has the first ones", async () => {
  expect(await valueAt(0, 'http_request_duration_seconds_count{route="/searxng/search",status="503"}')).toBe(0);
});
