import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openMetrics } from "../../../../shared/metrics.ts";
import type { GoogleEngine } from "../../../../worker/engine/google-engine.ts";
import type { Provider } from "../../../../shared/providers/provider.ts";
import { openSandbox } from "../../../../shared/providers/sandbox/sandbox.ts";
import { openSerper } from "../../../../shared/providers/serper/serper.ts";
import { googleOver, openGoogle } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import {
  hang,
  refusal,
  type Reply,
  type SerperStub,
  startSerperStub,
  tenOrganic,
} from "../../../harness/stubs/serper-stub.ts";
import { eventually } from "../../../harness/assertions/eventually.ts";

/** All that one provider is asked for one search: pages, second calls, and the wait for a place. */

const deadlineMs = 20_000;

let stub: SerperStub;
let serper: Provider;

beforeEach(async () => {
  stub = await startSerperStub();
  serper = openSerper(engineConfig({ SERPER_API_KEY: "secret", SERPER_BASE_URL: stub.url }));
});
afterEach(() => stub.close());

const forbidden = refusal(403, "Unauthorized.");
const after =
  (ms: number, reply: Reply): Reply =>
  (request, response) =>
    void setTimeout(() => reply(request, response), ms);
/** One reply to the first page, another one to all others. */
const byPage =
  (first: Reply, others: Reply): Reply =>
  (request, response) =>
    (request.body["page"] === 1 ? first : others)(request, response);

async function providersOf(google: GoogleEngine, depth: number, remainingMs = deadlineMs): Promise<string[]> {
  const { trace } = await google.search(query({ depth }), remainingMs);
  return [...new Set(trace.calls.map(({ provider }) => provider))];
}

describe("a provider whose first page comes and whose other pages fail", () => {
  test("is passed over as if it had failed at once", async () => {
    stub.otherwise = byPage(tenOrganic, forbidden);
    const google = googleOver(serper, openSandbox());
    for (let search = 0; search < 5; search += 1) {
      expect(await providersOf(google, 100)).toEqual(["serper", "sandbox"]);
    }
    expect(await providersOf(google, 100)).toEqual(["sandbox"]);
  });

  test("is not passed over for one search of many pages", async () => {
    const google = googleOver(serper, openSandbox());
    for (let search = 0; search < 5; search += 1) await providersOf(google, 10);
    stub.otherwise = byPage(tenOrganic, forbidden);
    await providersOf(google, 100);
    stub.otherwise = tenOrganic;
    expect(await providersOf(google, 100)).toEqual(["serper"]);
  });
});

const openBreakers = async ({ registry }: ReturnType<typeof openMetrics>) =>
  [...(await registry.metrics()).matchAll(/provider_breaker_open\{provider="(\w+)"\} 1/g)].map(([, name]) => name);

test("a provider that hangs is passed over, however many searches find no place at it", async () => {
  stub.otherwise = hang;
  const metrics = openMetrics();
  const google = openGoogle({}, { providers: [{ ...serper, concurrentCallsMax: 1, callTimeoutMs: 150 }], metrics });
  onTestFinished(() => google.close());
  const threeAtOnce = () => Promise.all([1, 2, 3].map(() => google.search(query(), 190)));
  for (let round = 0; round < 5; round += 1) await threeAtOnce();
  expect(await openBreakers(metrics)).toEqual(["serper"]);
});

test("no call is begun for a search that gets a place with hardly any time left", async () => {
  stub.otherwise = after(300, tenOrganic);
  const google = googleOver({ ...serper, concurrentCallsMax: 1 });
  const first = google.search(query(), deadlineMs);
  const late = google.search(query(), 330);
  expect(await late).toMatchObject({ code: "engine_timeout", trace: { calls: [] } });
  expect(await first).toMatchObject({ ok: true });
  expect(stub.requests).toHaveLength(1);
});

describe("two thirds of the time is all that a provider may take, as long as there is another one,", () => {
  const remainingMs = 3_000;

  test.each<[string, Reply, Reply]>([
    ["with its other pages", after(1_500, tenOrganic), hang],
    ["with its second call", after(1_500, refusal(503, "Oops")), hang],
  ])("%s", async (_, first, then) => {
    stub.otherwise = then;
    stub.next.push(first);
    const google = googleOver(serper, openSandbox());
    expect(await google.search(query({ depth: 20 }), remainingMs)).toMatchObject({
      ok: true,
      trace: { provider: "sandbox" },
    });
  });

  test("with the wait for a place at it", async () => {
    stub.otherwise = hang;
    const { promise: isFree, resolve: free } = Promise.withResolvers<void>();
    const sandbox = openSandbox();
    const second: Provider = {
      ...sandbox,
      concurrentCallsMax: 1,
      transport: async (...asked) => isFree.then(() => sandbox.transport?.(...asked) ?? Promise.reject(new Error())),
    };
    const metrics = openMetrics();
    const google = openGoogle({}, { providers: [{ ...serper, concurrentCallsMax: 1 }, second], metrics });
    onTestFinished(() => google.close());
    const busy = [google.search(query(), deadlineMs), google.search(query(), deadlineMs)];
    await eventually(async () =>
      (await metrics.registry.metrics()).includes('provider_calls_running{provider="sandbox"} 1'),
    );
    const waiting = google.search(query(), remainingMs);
    free();
    expect(await waiting).toMatchObject({ ok: true, trace: { provider: "sandbox" } });
    await Promise.all(busy);
  });
});

test("who was outrun is asked again where the one that was faster fails after all", async () => {
  stub.otherwise = after(300, tenOrganic);
  const sandbox = openSandbox();
  const faster: Provider = {
    ...sandbox,
    request: (asked, page) => sandbox.request(page === 1 ? asked : { ...asked, keyword: "sandbox:error" }, page),
  };
  const google = openGoogle({ SERP_HEDGE_AFTER_MS: "40" }, { providers: [serper, faster] });
  onTestFinished(() => google.close());
  const { ok, trace } = await google.search(query({ depth: 20 }), deadlineMs);
  expect({ ok, provider: trace.provider }).toEqual({ ok: true, provider: "serper" });
  expect(trace.calls.map(({ outcome }) => outcome)).toContain("outrun");
});

test("a hedge is not held against its provider when the one that was asked before answers first", async () => {
  stub.otherwise = after(150, tenOrganic);
  const silent: Provider = { ...openSandbox(), transport: () => new Promise(() => undefined) };
  const metrics = openMetrics();
  const google = openGoogle({ SERP_HEDGE_AFTER_MS: "40" }, { providers: [serper, silent], metrics });
  onTestFinished(() => google.close());
  for (let search = 0; search < 6; search += 1) {
    const { trace } = await google.search(query(), deadlineMs);
    expect(trace.calls.map(({ outcome }) => outcome).toSorted()).toEqual(["ok", "unneeded"]);
  }
  expect(await openBreakers(metrics)).toEqual([]);
});
