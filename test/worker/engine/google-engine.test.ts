import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../../shared/config.ts";
import type { EngineAnswer, GoogleEngine } from "../../../worker/engine/google-engine.ts";
import type { Provider } from "../../../worker/providers/provider.ts";
import { openSandbox } from "../../../worker/providers/sandbox/sandbox.ts";
import { openSerper } from "../../../worker/providers/serper/serper.ts";
import { eventually } from "../../harness/assertions/eventually.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { googleOver, openGoogle } from "../../harness/processes/google-engine.ts";
import {
  hang,
  raw,
  refusal,
  type Reply,
  reply,
  type SerperStub,
  startSerperStub,
  tenOrganic,
} from "../../harness/stubs/serper-stub.ts";

const deadlineMs = 20_000;
const key = "secret-key-of-a-test";

let stub: SerperStub;
let serper: Provider;

beforeEach(async () => {
  stub = await startSerperStub();
  serper = openSerper(engineConfig({ SERPER_API_KEY: key, SERPER_BASE_URL: stub.url }));
});
afterEach(() => stub.close());

const searchSerper = (fields: object = {}, remainingMs = deadlineMs) =>
  googleOver(serper).search(query(fields), remainingMs);

function resultsOf(answer: EngineAnswer) {
  if (!answer.ok) throw new Error(`The search failed: ${answer.code} ${JSON.stringify(answer.details)}.`);
  return answer.results;
}

describe("a search over HTTP", () => {
  test("one page is one call with our API key, and the trace has its cost", async () => {
    const answer = await searchSerper({ location: "Lyon, France" });
    expect(resultsOf(answer).map(({ rank }) => rank)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(answer.trace).toMatchObject({
      provider: "serper",
      costMicroUsd: 1_000,
      calls: [{ provider: "serper", outcome: "ok" }],
    });
    expect(stub.requests).toMatchObject([
      { method: "POST", path: "/search", key, body: { location: "Lyon,France", page: 1 } },
    ]);
  });

  test("without a stored list, a place that its country is not known to have is refused before any call", async () => {
    for (const location of ["Blah, Germany", "Blah, Nonsense, Germany", "Boston, Germany", "Blah County, Germany"]) {
      const answer = await searchSerper({ location });
      expect(answer).toMatchObject({
        code: "query_rejected",
        details: { reason: "location_unknown", field: "location" },
      });
    }
    expect(await searchSerper({ location: "Toronto, Germany" })).toMatchObject({
      details: { candidates: ["Toronto,Canada", "Toronto,Ohio,United States"] },
    });
    for (const [typed, meant] of [
      ["Berln, Germany", "Berlin,Germany"],
      ["Munihc, Germany", "Munich,Germany"],
      ["Pariss, France", "Paris,France"],
      ["Hambrg, Germany", "Hamburg,Germany"], // Not `Hamborg`, its name in other languages.
      ["Huoston, United States", "Houston,Texas,United States"],
      ["Huoston, TX", "Houston,Texas,United States"],
      ["San Fransisco, CA", "San Francisco,California,United States"],
      ["Seatle, Washington, USA", "Seattle,Washington,United States"],
      ["Chicgo, IL, United States", "Chicago,Illinois,United States"],
      ["Austin TX, USA", "Austin,Texas,United States"],
      ["Chicago/IL, US", "Chicago,Illinois,United States"],
      ["Chicgo IL, USA", "Chicago,Illinois,United States"],
      ["Toronto ON, Canada", "Toronto,Ontario,Canada"],
      ["London England, United Kingdom", "London,England,United Kingdom"],
      ["Greater London, United Kingdom", "London,United Kingdom"],
      ["Taiwan, China", "Taiwan"], // Not `Tanwan,China`.
      ["Delhi NCR, India", "Delhi,India"],
      ["Kanton Zürich, Switzerland", "Zürich,Switzerland"],
      ["Frankfurt a.M., Germany", "Frankfurt,Germany"],
      ["Fulton County, Georgia", "Fulton County,Georgia,United States"],
      ["Alanta, Georgia", "Atlanta,Georgia,United States"],
      ["10115 Berlin, Germany", "Berlin,Germany"],
      ["Warszawa 00-001, Poland", "Warszawa,Poland"],
      ["111 22 Stockholm, Sweden", "Stockholm,Sweden"],
      ["London SW1A 1AA, United Kingdom", "London,United Kingdom"],
      ["Austin TX 78701, USA", "Austin,Texas,United States"],
      ["Austin, TX 78701, USA", "Austin,TX,United States"],
    ] as const)
      expect(await searchSerper({ location: typed })).toMatchObject({ details: { candidates: { 0: meant } } });
    expect(stub.requests).toEqual([]);
  });

  test.each([
    "Oberammergau, Germany",
    "Blah, Bavaria, Germany",
    "Terlingua, Texas, United States", // 78 inhabitants
    "Nueva York, New York, United States",
    "La Place, Louisiana, United States",
    "Kolambiana, Alabama, United States",
    "SoHo, New York, New York, United States",
    "80331, Germany",
    "80331, Bavaria, Germany",
    "SW1A 1AA, London, United Kingdom",
    "100 Mile House, Canada",
    "Bayern, Germany",
    "Skåne County, Sweden",
    "State of Sao Paulo, Brazil",
    "Blah, County Dublin, Ireland",
    "東京, Japan",
  ])("without a stored list, %s is sent: the place or its area is known, or it is a postcode", async (location) => {
    expect(await searchSerper({ location })).toMatchObject({ ok: true });
    expect(stub.requests).toMatchObject([{ body: { location: location.replaceAll(", ", ",") } }]);
  });

  test("a deeper search fetches more pages, and ranks run on over all of them", async () => {
    const answer = await searchSerper({ depth: 35 });
    expect(
      resultsOf(answer)
        .map(({ rank, title }) => [rank, title])
        .slice(-6),
    ).toEqual([
      [30, "Pump 3.10"],
      [31, "Pump 4.1"],
      [32, "Pump 4.2"],
      [33, "Pump 4.3"],
      [34, "Pump 4.4"],
      [35, "Pump 4.5"],
    ]);
    expect(stub.requests.map(({ body }) => Number(body["page"])).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4]);
    expect(answer.trace.costMicroUsd).toBe(4_000);
  });

  test("a URL that appears on several pages is one result", async () => {
    const organic = ["first", "second"].map((title) => ({ title, link: "https://pumps.example/same" }));
    stub.otherwise = reply(200, { organic, relatedSearches: [{ query: "more" }] });
    expect(resultsOf(await searchSerper({ depth: 20 })).map(({ rank, type, title }) => [rank, type, title])).toEqual([
      [1, "organic", "first"],
      [2, "related_searches", ""],
      [3, "related_searches", ""],
    ]);
  });
});

test("after the deadline no provider is called", async () => {
  expect(await searchSerper({}, -1)).toMatchObject({ code: "engine_timeout" });
  expect(stub.requests).toEqual([]);
});

const searchAt = (fields: object, ...providers: Provider[]) =>
  googleOver(...providers).search(query(fields), deadlineMs);

test.each<[string, Reply]>([
  ["an empty account", refusal(400, "Not enough credits")],
  ["a forbidden query", refusal(400, "Query pattern not allowed for free accounts.")],
  ["a page of HTML", raw(200, "<html>")],
  ["a server error", refusal(500, "Oops")],
])("after %s at the first provider the second one answers", async (_, failing) => {
  stub.otherwise = failing;
  const answer = await googleOver(serper, openSandbox()).search(query(), deadlineMs);
  expect(answer.ok && answer.results.length).toBeGreaterThan(10);
  expect(answer.trace.provider).toBe("sandbox");
});

test("the calls that may run at once are those of all providers, without one whose circuit is open", async () => {
  const failing = { ...serper, concurrentCallsMax: 7 };
  const google = googleOver(failing, { ...openSandbox(), concurrentCallsMax: 3 });
  expect(google.callsMax()).toBe(10);
  stub.otherwise = refusal(400, "Not enough credits");
  while (google.callsMax() > 3) await google.search(query(), deadlineMs);
  expect(google.callsMax()).toBe(3);
});

test("the cost of a failed call is recorded for the provider that charged it", async () => {
  const billed: Provider = { ...serper, read: () => ({ failure: "blocked", costMicroUsd: 2_000 }) };
  const { trace } = await googleOver(billed, openSandbox()).search(query(), deadlineMs);
  expect(trace).toMatchObject({
    provider: "sandbox",
    costMicroUsd: 2_000,
    calls: [
      { provider: "serper", costMicroUsd: 2_000 },
      { provider: "sandbox", costMicroUsd: 0 },
    ],
  });
});

test("when the last provider times out, the search does", async () => {
  const google = googleOver(serper, { ...openSandbox(), callTimeoutMs: 50 });
  stub.otherwise = refusal(403, "Unauthorized.");
  expect(await google.search(query({ keyword: "sandbox:timeout" }), deadlineMs)).toMatchObject({
    code: "engine_timeout",
  });
});

test("a query that every provider forbids is rejected; one failure of another kind makes it an engine error", async () => {
  stub.otherwise = refusal(400, "Query pattern not allowed for free accounts.");
  expect(await searchAt({ keyword: '"pump"' }, serper)).toMatchObject({
    ok: false,
    code: "query_rejected",
    details: { reason: "refused_by_provider", field: "keyword" },
  });
  const both = googleOver(openSandbox(), serper);
  expect(await both.search(query({ keyword: "sandbox:error" }), deadlineMs)).toMatchObject({
    code: "engine_error",
    details: { reason: "provider_unavailable" },
  });
});

test("a provider that cannot honour the whole query is not called", async () => {
  const answer = await googleOver(serper, openSandbox()).search(query({ device: "mobile" }), deadlineMs);
  expect(answer.trace).toMatchObject({ provider: "sandbox", calls: [{ provider: "sandbox" }] });
  expect(stub.requests).toEqual([]);
});

test("a query that no provider can honour is rejected with the field, and costs nothing", async () => {
  const countryOnly = { ...openSandbox(), can: { mobile: true, city: false } };
  expect(await searchAt({ device: "mobile" }, serper)).toMatchObject({
    code: "query_rejected",
    details: { reason: "unsupported", field: "device" },
    trace: { calls: [], costMicroUsd: 0 },
  });
  const lyon = { location: "Lyon, France" };
  expect(await searchAt(lyon, countryOnly)).toMatchObject({ details: { field: "location" } });
  expect(await searchAt({ ...lyon, device: "mobile" }, countryOnly, serper)).toMatchObject({
    details: { field: "device" },
  });
  const germanOnly = { ...openSandbox(), can: { mobile: true, city: true, language: (code: string) => code === "de" } };
  expect(await searchAt(lyon, countryOnly, germanOnly)).toMatchObject({ details: { field: "location" } });
});

test("providers are tried in the order of SERP_PROVIDERS, and a missing setting stops the start", async () => {
  const settings = { SERP_PROVIDERS: "serper,sandbox", SERPER_BASE_URL: stub.url };
  expect(() => openGoogle(settings)).toThrow(ConfigError);
  stub.otherwise = refusal(403, "Unauthorized.");
  const google = openGoogle({ ...settings, SERPER_API_KEY: key });
  onTestFinished(() => google.close());
  const { trace } = await google.search(query(), deadlineMs);
  expect(trace.calls.map(({ provider }) => provider)).toEqual(["serper", "sandbox"]);
});

describe("a provider whose circuit is open", () => {
  const failing = refusal(403, "Unauthorized.");
  const calledBy = async (google: GoogleEngine): Promise<string[]> => {
    const { trace } = await google.search(query(), deadlineMs);
    return trace.calls.map(({ provider, outcome }) => `${provider}: ${outcome}`);
  };

  test("is skipped, and costs later searches nothing", async () => {
    stub.otherwise = failing;
    const google = googleOver(serper, openSandbox());
    for (let search = 0; search < 5; search += 1) {
      expect(await calledBy(google)).toEqual(["serper: account_refused", "sandbox: ok"]);
    }
    expect(await calledBy(google)).toEqual(["sandbox: ok"]);
  });

  test("is called although it is open if there is no other", async () => {
    stub.otherwise = failing;
    const google = googleOver(serper);
    for (let search = 0; search < 8; search += 1) await calledBy(google);
    stub.otherwise = tenOrganic;
    expect(await calledBy(google)).toEqual(["serper: ok"]);
  });

  test("is called last if all others fail", async () => {
    stub.otherwise = failing;
    const refusing: Provider = { ...openSandbox(), read: () => ({ failure: "query_refused" }) };
    const google = googleOver(serper, refusing);
    for (let search = 0; search < 5; search += 1) await calledBy(google);
    stub.otherwise = tenOrganic;
    expect(await calledBy(google)).toEqual(["sandbox: query_refused", "serper: ok"]);
  });
});

test("a saturated provider is skipped for the next one that is ready", async () => {
  const google = googleOver({ ...serper, concurrentCallsMax: 1 }, openSandbox());
  const answer = stub.hold();
  const first = google.search(query(), deadlineMs);
  await eventually(async () => stub.requests.length === 1);
  expect(await google.search(query(), deadlineMs)).toMatchObject({ trace: { provider: "sandbox" } });
  answer();
  expect(await first).toMatchObject({ trace: { provider: "serper" } });
});

test("with SERP_HEDGE_AFTER_MS the next provider is called as well when the first one is slow", async () => {
  stub.otherwise = hang;
  const google = openGoogle({ SERP_HEDGE_AFTER_MS: "1" }, { providers: [serper, openSandbox()] });
  onTestFinished(() => google.close());
  const answer = await google.search(query(), deadlineMs);
  expect(answer).toMatchObject({ ok: true, trace: { provider: "sandbox" } });
  expect(answer.trace.calls.map(({ outcome }) => outcome).toSorted()).toEqual(["lost_hedge", "ok"]);
});
