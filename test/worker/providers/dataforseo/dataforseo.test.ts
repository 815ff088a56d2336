import { describe, expect, test } from "vitest";
import type { Failure, Page, PageAnswer } from "../../../../worker/providers/provider.ts";
import { openDataForSeo } from "../../../../worker/providers/dataforseo/dataforseo.ts";
import { openGoogle } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { failedTask } from "../provider-failures.ts";

const dataforseo = openDataForSeo(engineConfig({ DATAFORSEO_LOGIN: "me", DATAFORSEO_PASSWORD: "pass" }));

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

test("a row that cannot be read does not cost a page its other elements", () => {
  const page = readJson(
    pageWith(["organic", organic("https://a.example/"), { type: "related_searches", items: ["a"] }]),
  );
  expect(page).toMatchObject({ elements: [{ title: "Pumps" }, { type: "related_searches" }], unreadableRows: 1 });
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
