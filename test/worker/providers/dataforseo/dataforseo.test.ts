import { describe, expect, test } from "vitest";
import type { Failure, Page, PageAnswer } from "../../../../worker/providers/provider.ts";
import { openDataForSeo } from "../../../../worker/providers/dataforseo/dataforseo.ts";
import { openGoogle } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { failedTask } from "../provider-failures.ts";

const credentials = { DATAFORSEO_LOGIN: "me@pumps.example", DATAFORSEO_PASSWORD: "pass:word" };
const config = engineConfig({ ...credentials, DATAFORSEO_BASE_URL: "https://dfs.example/" });
const dataforseo = openDataForSeo(config);

const taskOf = (fields: object): unknown => JSON.parse(dataforseo.request(query(fields), 1).body);

describe("request", () => {
  test("a search is one task with its whole depth, and the credentials are only in the header", () => {
    const request = dataforseo.request(query({ location: "UK", language: "German", depth: 25 }), 1);
    expect(request).toMatchObject({ url: "https://dfs.example/v3/serp/google/organic/live/advanced" });
    expect(request.headers["authorization"]).toBe(`Basic ${btoa("me@pumps.example:pass:word")}`);
    expect(JSON.parse(request.body)).toEqual([
      {
        keyword: "garden pump",
        location_code: 2826,
        language_code: "de",
        device: "desktop",
        depth: 30,
        max_crawl_pages: 3,
        load_async_ai_overview: true,
      },
    ]);
  });

  test("AI Overviews that Google loads later are not ordered, and not paid for, if the operator turns them off", () => {
    const withoutOverviews = openDataForSeo(engineConfig({ ...credentials, DATAFORSEO_AI_OVERVIEW: "off" }));
    expect(withoutOverviews.request(query({}), 1).body).not.toContain("ai_overview");
  });

  test("clicks on questions and further results of a domain are ordered only if the operator turns them on", () => {
    const settings = { DATAFORSEO_QUESTION_CLICKS: "3", DATAFORSEO_UNGROUP_RESULTS: "on" };
    const detailed = openDataForSeo(engineConfig({ ...credentials, ...settings }));
    expect(JSON.parse(detailed.request(query({}), 1).body)).toMatchObject([
      { people_also_ask_click_depth: 3, group_organic_results: false },
    ]);
    expect(dataforseo.request(query({}), 1).body).not.toMatch(/click_depth|group_organic/);
  });

  test("a city is sent by name, and so is a country without an ISO 3166-1 number", () => {
    expect(taskOf({ location: "Austin, Texas, USA" })).toMatchObject([{ location_name: "Austin,Texas,United States" }]);
    expect(taskOf({ location: "Kosovo" })).toMatchObject([{ location_name: "Kosovo" }]);
  });

  test.each([
    ["Norwegian", "no"],
    ["zh-Hant", "zh-TW"],
    ["pt-BR", "pt-BR"],
    ["es-419", "es-419"],
    ["en-GB", "en"],
    ["zh-HK", "zh-TW"],
    ["Filipino", "fil"],
    ["sr-Latn", "sr-Latn"],
  ])("the language %s is sent as %s", (language, code) => {
    expect(taskOf({ language })).toMatchObject([{ language_code: code }]);
  });

  test("a mobile search is sent as such, and percent signs and pluses in the keyword are escaped", () => {
    const task = { device: "mobile", keyword: "100%25 c%2B%2B & more" };
    expect(taskOf({ device: "mobile", keyword: "100% c++ & more" })).toMatchObject([task]);
  });
});

describe("a search", () => {
  const searchOver = async (answer: object, fields: object = {}) => {
    const transport = () => Promise.resolve({ status: 200, headers: {}, body: JSON.stringify(answer) });
    const google = openGoogle({}, { providers: [{ ...dataforseo, transport }] });
    const answered = await google.search(query(fields), 60_000);
    await google.close();
    return answered;
  };

  test("returns all results of a deep search with one call, and its cost", async () => {
    const items = Array.from({ length: 100 }, (_, row) => organic(`https://pumps.example/${row}`));
    const answer = await searchOver(pageWith(items, { cost: 0.01595 }), { depth: 95 });
    expect(answer).toMatchObject({ ok: true, totalResultsCount: 85_600_000, trace: { costMicroUsd: 15_950 } });
    expect(answer.ok && answer.results.map(({ rank }) => rank)).toEqual(Array.from({ length: 95 }, (_, i) => i + 1));
    expect(answer.trace.calls).toHaveLength(1);
  });

  test("that Google blocked is not retried, because each attempt is charged, and has its cost", async () => {
    const answer = await searchOver(failedTask(40101, "SE error.", 0.002));
    expect(answer).toMatchObject({ code: "engine_error", details: { reason: "provider_unavailable" } });
    expect(answer.trace).toMatchObject({ costMicroUsd: 2_000, calls: [{ outcome: "blocked" }] });
    expect(answer.trace.calls).toHaveLength(1);
  });

  test("from a location that DataForSEO does not know is refused with the name of the field", async () => {
    const answer = await searchOver(failedTask(40501, "Invalid Field: 'location_name'."), { location: "Austin, USA" });
    const details = { reason: "refused_by_provider", field: "location" };
    expect(answer).toMatchObject({ code: "query_rejected", details, trace: { calls: [{ outcome: "query_refused" }] } });
  });
});

describe("an empty page is a success and has a cost", () => {
  const empty = { elements: [], totalResultsCount: 0, hasMore: false };

  test.each([
    ["the status for no results", failedTask(40102, "No Search Results.", 0.002), 2_000],
    ["no items", pageWith(null, { se_results_count: 0, cost: 0.0035 }), 3_500],
    ["an empty list, and no cost", pageWith([], { se_results_count: null, cost: null }), 2_000],
    ["no cost, and ten pages", pageWith([], { se_results_count: null, cost: null, data: { depth: 100 } }), 15_500],
    [
      "no cost, and clicks on questions",
      pageWith([], { se_results_count: null, cost: null, data: { depth: 10, people_also_ask_click_depth: 4 } }),
      2_600,
    ],
  ])("%s", (_, answer, costMicroUsd) => {
    expect(readJson(answer)).toEqual({ ...empty, costMicroUsd });
  });
});

describe("a page with rows that cannot be read", () => {
  const good = organic("https://pumps.example/1");

  test.each([
    ["a result without an address", { type: "organic", title: "a" }],
    ["a result whose address is null", { type: "organic", title: "a", url: null }],
    ["a result without a title", { type: "organic", url: "https://a.example/" }],
    ["a result whose title is a list", { ...organic("https://a.example/"), title: ["a"] }],
    ["an item without a type", { title: "a" }],
    ["an item with an empty type", { type: "", title: "a" }],
    ["a text", "organic"],
    ["a list", [good]],
  ])("has all other rows, and the number of the lost ones: %s", (_, row) => {
    const page = readJson(pageWith([row, good, { type: "related_searches", items: ["hoses"] }, row]));
    expect(page).toMatchObject({ elements: [{ title: "Pumps" }, { type: "related_searches" }], unreadableRows: 2 });
  });

  test("does not count rows without anything in them", () => {
    const page = readJson(pageWith([null, good, {}, ""]));
    expect(page).toMatchObject({ elements: [{ title: "Pumps" }] });
    expect(page).not.toHaveProperty("unreadableRows");
  });

  test("is unreadable if no row of it can be read", () => {
    const failure = { failure: "unreadable", costMicroUsd: 2_000 };
    expect(readJson(pageWith([{ title: "a" }, null]))).toEqual(failure);
    expect(readJson(pageWith([null]))).toEqual(failure);
  });
});

describe("the keyword that was searched", () => {
  const searchedInstead = (spell: unknown) => readJson(pageWith([organic("https://pumps.example/1")], { spell }));

  test.each(["showing_results_for", "including_results_for", "no_results_found_for"])(
    "is returned if Google corrected the spelling: %s",
    (type) => {
      const spell = { keyword: "garden <b>pumps</b>", type };
      expect(searchedInstead(spell)).toMatchObject({ searchedKeyword: "garden pumps" });
    },
  );

  test.each([
    ["Google only suggests another one", { keyword: "garden pumps", type: "did_you_mean" }],
    ["nothing was corrected", null],
    ["the correction is of an unknown kind", { keyword: "garden pumps", type: "__proto__" }],
    ["the correction is no text", { keyword: { a: 1 }, type: "showing_results_for" }],
  ])("is the caller's if %s", (_, spell) => {
    const page = searchedInstead(spell);
    expect(page).toMatchObject({ elements: [{ title: "Pumps" }] });
    expect(page).not.toHaveProperty("searchedKeyword");
  });
});

describe("a failure never looks like an empty page", () => {
  test.each([
    [40501, "Invalid Field: 'keyword'.", "keyword"],
    [40501, "Invalid Field: 'location_code'.", "location"],
    [40501, "Invalid Field: 'language_code'.", "language"],
    [40505, "Outdated location.", "location"],
  ])("%i with %j is a refused query", (code, message, field) => {
    expect(readJson(failedTask(code, message))).toEqual({ failure: "query_refused", field });
  });

  test.each([
    [401, "account_refused"],
    [402, "account_refused"],
    [403, "account_refused"],
    [404, "request_refused"],
    [408, "unavailable"],
    [429, "rate_limited"],
    [500, "unavailable"],
    [502, "unavailable"],
    [204, "unreadable"],
  ])("HTTP %i without a status code in the body is %s", (status, failure) => {
    for (const body of ["", "<html>", "null", '{"status_code":20000,"tasks":[]}', JSON.stringify(pageWith([]))]) {
      expect(dataforseo.read({ status, headers: {}, body })).toEqual({ failure });
    }
  });

  test.each([
    ["a task is missing", { status_code: 20000, tasks: [] }],
    ["two tasks for one", { status_code: 20000, tasks: [1, 2].flatMap(() => pageWith([]).tasks) }],
    ["no results at all", { status_code: 20000, tasks: null }],
    ['"no results" of the whole', { status_code: 40102, tasks: null }],
  ])("unreadable: %s", (_, answer) => {
    expect(readJson(answer)).toEqual({ failure: "unreadable" });
  });

  test.each([
    ["null for the result", null],
    ["an empty result", []],
    ["fewer items than counted", [{ items_count: 96, items: [] }]],
    ["missing items", [{ items_count: 0 }]],
    ["items that are not a list", [{ items: { type: "organic" } }]],
    ["more items than any page has", [{ items: Array.from({ length: 5_001 }, () => ({ type: "x" })) }]],
  ])("a successful task with %s is unreadable, and has its cost", (_, found) => {
    const tasks = [{ status_code: 20000, status_message: "Ok.", cost: 0.002, result: found }];
    expect(readJson({ status_code: 20000, tasks })).toEqual({ failure: "unreadable", costMicroUsd: 2_000 });
  });
});

function organic(url: string) {
  return { type: "organic", title: "Pumps", url };
}

function pageWith(
  items: unknown,
  { cost, data, ...rest }: { cost?: unknown; data?: unknown; se_results_count?: unknown; spell?: unknown } = {},
) {
  const found = { keyword: "garden pump", se_results_count: 85_600_000, items_count: 0, items, ...rest };
  const task = { id: "1", status_code: 20000, status_message: "Ok.", cost, data, result_count: 1, result: [found] };
  return { version: "0.1", status_code: 20000, status_message: "Ok.", tasks_error: 0, tasks: [task] };
}

function readJson(json: unknown, status: PageAnswer["status"] = 200): Page | Failure {
  return dataforseo.read({ status, headers: {}, body: JSON.stringify(json) });
}
