import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { Connection } from "../harness/clients/connection.ts";
import { searchBytes } from "../abuse/callers/requests.ts";
import { queueKeys } from "../../shared/queue/search-queue.ts";
import { readBacklog } from "../harness/assertions/backlog.ts";
import { seesWorkers, summed, unpaidCalls } from "../harness/assertions/metrics.ts";
import { type PageVisitor, signedIn } from "../harness/clients/page-visitor.ts";
import { type Organization, Service } from "../harness/processes/service.ts";
import { hang, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/**
 * Callers that disconnect while their searches run, or cancel them in the playground: what they still occupy, what it may cost,
 * and how often they may.
 */

const slots = 8;
let unpaidBefore: number;
const stub = await startSerperStub(afterAll);
const settings = { LOG_LEVEL: "debug", WORKER_CONCURRENCY: String(slots), SEARCH_DEADLINE_MS: "10000" };
const service = await Service.start({ environment: { ...stub.settings, ...settings }, end: afterAll });
beforeEach(async () => {
  for (const worker of service.workers) worker.lines.length = 0;
  stub.otherwise = tenOrganic;
  unpaidBefore = await unpaidCalls(service);
});
afterEach(() => service.rest());
afterAll(async () => {
  expect(await service.verify()).toMatchObject({ ok: true, violations: [] });
});

const unpaid = async () => (await unpaidCalls(service)) - unpaidBefore;
const deep = (keyword: string) => ({ keyword, depth: 100 });
const callsFor = (keyword: string) => stub.requests.filter(({ body }) => body.q === keyword).length;
const isAsked = (keyword: string, calls = 1) => service.until(async () => callsFor(keyword) >= calls);
const hasHolds = ({ organizationId }: Organization, holds: { open: number; heldMils: number }) =>
  service.until(async () => {
    const seen = await service.holdsOf(organizationId);
    return seen.open === holds.open && seen.heldMils === holds.heldMils;
  });

/** A caller that sends a search and disconnects on demand. */
function caller({ token }: Organization, body: object, options: { key?: string } = {}) {
  const connection = new AbortController();
  const search = service
    .search(token, body, { ...options, signal: connection.signal })
    .catch(() => "disconnected" as const);
  const disconnect = async () => {
    connection.abort();
    return search;
  };
  return { search, disconnect };
}

const workersKnow = () =>
  Promise.all(service.workers.map((worker) => worker.line("the caller of a search disconnected")));

/** Sends a search, waits until its first page is asked, and disconnects. */
async function leaveAfterFirstPage(organization: Organization, keyword: string): Promise<void> {
  const { disconnect } = caller(organization, deep(keyword));
  await isAsked(keyword);
  await disconnect();
}

test("a search whose caller disconnects asks no further page, and keeps its concurrency slot without mils until its call has ended", async () => {
  const organization = await service.organization({ creditMils: 100 });
  const release = stub.hold();
  await leaveAfterFirstPage(organization, "deep");
  await hasHolds(organization, { open: 1, heldMils: 0 });
  expect((await service.usage(organization.token)).body.creditBalanceMils).toBe(100);
  expect((await service.ledgerOf(organization.organizationId)).at(-1)).toMatchObject({ reason: "caller_disconnected" });
  await workersKnow();

  release();
  await hasHolds(organization, { open: 0, heldMils: 0 });
  expect([callsFor("deep"), await unpaid()]).toEqual([1, 1]);
});

test("beyond the budget of unpaid calls searches without a key get a 429 with its own reason; searches with a key and other organizations do not", async () => {
  // One token may use half of it.
  const organization = await service.organization({ terms: { unpaidCalls: 3 } });
  const release = stub.hold();
  for (const keyword of ["one", "two"]) await leaveAfterFirstPage(organization, keyword);
  await workersKnow();
  release();
  await hasHolds(organization, { open: 0, heldMils: 0 });
  expect(await unpaid()).toBeGreaterThanOrEqual(2);
  const refusals = () => summed(service.apis, 'admissions_total{outcome="unpaid_calls"}');
  const before = await refusals();
  const refused = await service.search(organization.token, { keyword: "three" });
  expect(refused).toMatchObject({ status: 429, body: { error: { code: "rate_limited" } } });
  const { reason, limit, windowSeconds, retryAfterMs } = refused.body.error.details;
  expect({ reason, limit, windowSeconds }).toEqual({ reason: "unpaid_calls", limit: 3, windowSeconds: 3_600 });
  expect(retryAfterMs).toBeGreaterThan(0);
  expect(Number(refused.headers.get("retry-after"))).toBe(Math.ceil(retryAfterMs / 1_000));
  expect(await service.holdsOf(organization.organizationId)).toEqual({ open: 0, heldMils: 0 });
  expect(await refusals()).toBe(before + 1);

  expect((await service.search(organization.token, { keyword: "three" }, { key: "paid" })).status).toBe(200);
  expect((await service.search((await service.organization()).token, { keyword: "three" })).status).toBe(200);
});

test("a search that still waits in the queue is removed when its caller disconnects, and does not count", async () => {
  const organization = await service.organization();
  const release = stub.hold();
  const running = Array.from({ length: slots }, (_, n) => service.search(organization.token, { keyword: `busy ${n}` }));
  await service.untilRunning(slots);
  const waiting = caller(organization, deep("waiting"));
  await service.until(async () => (await readBacklog(service.redis)).waiting === 1);
  await waiting.disconnect();
  await hasHolds(organization, { open: slots, heldMils: slots * 5 });
  expect((await readBacklog(service.redis)).waiting).toBe(0);
  release();
  for (const { status } of await Promise.all(running)) expect(status).toBe(200);
  expect([callsFor("waiting"), await unpaid()]).toEqual([0, 0]);
});

test("a caller that closes its sending direction has disconnected: it gets no answer and pays nothing", async () => {
  const organization = await service.organization({ creditMils: 100 });
  const url = service.apis[0]?.url ?? "";
  const release = stub.hold();
  const connection = await Connection.open(url);
  connection.send(searchBytes({ url, token: organization.token }, deep("half-closed")));
  await isAsked("half-closed");
  connection.finish();
  await connection.readUntil(() => connection.isClosed, 15_000);
  expect([connection.receivedBytes, connection.isClosed]).toEqual([0, true]);
  await workersKnow();
  release();
  await hasHolds(organization, { open: 0, heldMils: 0 });
  expect((await service.usage(organization.token)).body.creditBalanceMils).toBe(100);
});

test("a search that was disconnected before its worker died is not asked again by the next one", async () => {
  const organization = await service.organization({ creditMils: 100 });
  stub.hold();
  await leaveAfterFirstPage(organization, "dying");
  await hasHolds(organization, { open: 1, heldMils: 0 });
  await Promise.all(service.workers.splice(0).map((worker) => worker.destroy()));
  await service.startWorker();
  await hasHolds(organization, { open: 0, heldMils: 0 });
  await service.until(async () => (await service.redis.llen(queueKeys.running)) === 0);
  expect(callsFor("dying")).toBe(1);
});

test("callers that wait for a provider that hangs, or disconnect meanwhile, are not refused once it answers again", async () => {
  const organization = await service.organization({ terms: { unpaidCalls: 2 } });
  const impatient = await service.startApi({ SEARCH_DEADLINE_MS: "4000" });
  await service.until(() => seesWorkers(impatient));
  const api = service.apis.indexOf(impatient);
  stub.otherwise = hang;
  const searches = Array.from({ length: 30 }, (_, at) => {
    const signal = at % 2 === 0 ? AbortSignal.timeout(1_000) : undefined;
    const body = { keyword: `unanswered ${at}`, depth: 100 };
    return service.search(organization.token, body, { api, ...(signal && { signal }) }).catch(() => undefined);
  });
  await Promise.all(searches);
  await service.rest();
  expect(await unpaid()).toBe(0);
  stub.otherwise = tenOrganic;
  const refused = await service.search(organization.token, { keyword: "again" });
  expect(refused.body.error?.details.reason).not.toBe("unpaid_calls");
});

/** Someone at a form of the playground. */
async function atForm(options: Parameters<Service["organization"]>[0] = {}) {
  const { organization, person } = await signedIn(service, { creditMils: 1_000, ...options });
  const post = (path: string, keyword: string, more: Record<string, string>) =>
    person.post(path, {
      organization: organization.organizationId,
      key: `key of ${keyword}`.replaceAll(" ", "-"),
      keyword,
      ...more,
    });
  return {
    organization,
    search: (keyword: string, more = {}): ReturnType<PageVisitor["post"]> => post("/playground/search", keyword, more),
    cancel: async (keyword: string, more = {}) => {
      let answer = await post("/playground/cancel", keyword, more);
      // A slow machine may refuse it for a moment.
      while (answer.status === 503) answer = await post("/playground/cancel", keyword, more);
      expect(answer.status).toBe(200);
      return JSON.parse(answer.text) as { outcome: string; address?: string };
    },
    ends: async () => {
      await service.rest();
      return (await service.ledgerOf(organization.organizationId)).slice(1).map(({ kind, reason }) => reason ?? kind);
    },
  };
}

test("a search that runs ends without a charge, sends no further call, and keeps its concurrency slot until its call has ended", async () => {
  const { organization, search, cancel, ends } = await atForm();
  const release = stub.hold();
  const page = search("deep at a form", { depth: "100" });
  await isAsked("deep at a form");
  expect(await cancel("deep at a form", { depth: "100" })).toEqual({ outcome: "cancelled" });
  expect(await service.holdsOf(organization.organizationId)).toEqual({ open: 1, heldMils: 0 });
  expect(await cancel("deep at a form", { depth: "100" })).toEqual({ outcome: "cancelled" });
  release();
  expect((await page).status).not.toBe(200);
  await hasHolds(organization, { open: 0, heldMils: 0 });
  expect([callsFor("deep at a form"), await unpaid()]).toEqual([1, 1]);
  expect(await ends()).toEqual(["caller_disconnected"]);
  expect((await search("deep at a form", { depth: "100" })).status).toBe(200);
  expect(await ends()).toEqual(["caller_disconnected", "charge"]);
});

test("after its charge a search stands, however often it is cancelled, and the page of its answer is named", async () => {
  const { search, cancel, ends } = await atForm();
  expect(await cancel("coffee")).toEqual({ outcome: "not_running" });
  const page = await search("coffee");
  const [address] = /\/billing\/searches\/req_\w+/.exec(page.text) ?? [];
  const told = await Promise.all([1, 2, 3].map(() => cancel("coffee")));
  for (const one of told) expect(one).toEqual({ outcome: "charged", address });
  expect((await search("coffee")).status).toBe(200);
  expect(await ends()).toEqual(["charge"]);
});

test("whenever a cancellation comes, the search is charged and answered, or neither", async () => {
  const persons = await Promise.all([1, 2, 3].map(() => atForm()));
  const races = persons.flatMap(({ search, cancel }, from) =>
    Array.from({ length: 15 }, async (_, n) => {
      const keyword = `race ${from} ${n}`;
      const page = search(keyword);
      // From before the admission until after the answer.
      for (let turns = 0; turns < 3 * n; turns += 1) await service.redis.ping();
      const first = (await cancel(keyword)).outcome;
      const { status } = await page;
      const second = (await cancel(keyword)).outcome;
      return { first, isAnswered: status === 200, second };
    }),
  );
  const ended = await Promise.all(races);
  // A refusal or a time-out is neither charged nor answered, whatever the cancellation found.
  const isSound: Record<string, boolean[]> = { charged: [true], cancelled: [false], not_running: [true, false] };
  const unsound = ended.filter(
    ({ first, isAnswered, second }) => isAnswered !== (second === "charged") || !isSound[first]?.includes(isAnswered),
  );
  expect(unsound).toEqual([]);
  const ledgers = await Promise.all(persons.map(({ ends }) => ends()));
  const answered = ended.filter(({ isAnswered }) => isAnswered);
  expect(ledgers.flat().filter((end) => end === "charge")).toHaveLength(answered.length);
});
