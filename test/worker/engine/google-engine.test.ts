import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Provider } from "../../../worker/providers/provider.ts";
import type { EngineAnswer } from "../../../worker/engine/google-engine.ts";
import { openSerper } from "../../../worker/providers/serper/serper.ts";
import { googleOver } from "../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";

const deadlineMs = 20_000;
const key = "secret-key-of-a-test";

let stub: SerperStub;
let serper: Provider;

beforeEach(async () => {
  stub = await startSerperStub();
  serper = openSerper(engineConfig({ SERPER_API_KEY: key, SERPER_BASE_URL: stub.url }));
});
afterEach(() => stub.close());

function searchSerper(fields: object = {}, remainingMs = deadlineMs): Promise<EngineAnswer> {
  return googleOver(serper).search(query(fields), remainingMs);
}

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
