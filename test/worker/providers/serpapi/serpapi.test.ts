import { describe, expect, test } from "vitest";
import type { Element } from "../../../../worker/providers/provider.ts";
import { openSerpapi } from "../../../../worker/providers/serpapi/serpapi.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import {
  elementsOf,
  pageOf,
  pageWithRow,
  readJson,
  row,
  serpapiKey as key,
  succeededMetadata,
} from "../../../harness/fixtures/serpapi-page.ts";
import { failedSearch, noResultsMessage } from "../provider-failures.ts";

describe("an organic result", () => {
  test.each([
    ["in one line with its count", ["5.0(102)", "5 mins"], { rating: 5, reviews: 102 }, ["5 (102)", "5 mins"]],
    ["with a decimal comma", ["Bewertung: 4,7", "24 Rezensionen"], { rating: 4.7, reviews: 24 }, ["4.7 (24)"]],
    ["with a rounded count", ["4.4 (1.1K)", "$5"], { rating: 4.4, reviews: 1100 }, ["4.4 (1,100)", "$5"]],
    [
      "below a line with the same number",
      ["Level 4", "4.0 (12)", "$9"],
      { rating: 4, reviews: 12 },
      ["4 (12)", "Level 4", "$9"],
    ],
    ["with a scale that is not 5", ["Rating: 9/10", "9 items"], { rating: 9 }, ["9/10", "9 items"]],
    [
      "with a line for screen readers",
      ["Rating 8.5/10", " 8.5/10", "By Ann"],
      { rating: 8.5, reviews: 8.5 },
      ["8.5/10", "By Ann"],
    ],
    ["in Arabic digits", ["التقييم ٤٫٤  (١٤٧)", "٤٫٤  (١٤٧)"], { rating: 4.4, reviews: 147 }, ["4.4 (147)"]],
    [
      "by its French name, with its votes and what follows them",
      ["Note : 4,3", "4\u00a0292 avis Non vérifiés", "9 kg"],
      { rating: 4.5, note: 4.3, avis_non_vérifiés: 4292 },
      ["4.3 (4,292)", "Non vérifiés", "9 kg"],
    ],
    [
      "by its German name alone",
      ["Bewertung: 4,7", "24 Rezensionen"],
      { bewertung: 4.7, rezensionen: 24 },
      ["4.7 (24)"],
    ],
    ["that is none", ["Length: 4.5", "3 doors"], { length: 4.5, doors: 3 }, ["Length: 4.5", "3 doors"]],
    ["that no line contains", ["5 mins"], { rating: 5, reviews: 2 }, ["5 (2)", "5 mins"]],
    ["that was not recognized", ["4.5 stars (3)"], {}, ["4.5 stars (3)"]],
  ])("has its rating once: %s", (_, extensions, detected_extensions, top) => {
    expect(organicOf({ rich_snippet: { top: { extensions, detected_extensions } } }).richSnippet.top).toEqual(top);
  });

  test("has the number of results behind it once, without a dash", () => {
    const displayed_results = "Results 1 - 48 of 20000+";
    const found = organicOf({ displayed_results, rich_snippet: { top: { extensions: [`${displayed_results} —`] } } });
    expect(found.richSnippet).toEqual({ top: [displayed_results], bottom: [] });
  });

  test("has its own rating above and its own lines below the snippet", () => {
    const found = organicOf({
      rating: 4.9,
      reviews: 9,
      extensions: ["Rating", "4.9 (9)", "5 min"],
      author: "by A. Reed",
    });
    expect(found.richSnippet).toEqual({ top: ["4.9 (9)", "by A. Reed"], bottom: ["5 min"] });
  });

  test("without a link has the target of its redirect", () => {
    const redirect_link = "https://www.google.com/url?sa=t&url=https://pumps.example/behind&ved=x";
    expect(organicOf({ link: undefined, redirect_link }).url).toBe("https://pumps.example/behind");
  });
});

describe("the rest of a page", () => {
  test("has the total, unless the page itself contradicts it", () => {
    const total = (total_results: unknown, next?: string) =>
      pageWithRow({ search_information: { total_results }, serpapi_pagination: { current: 1, next } })
        .totalResultsCount;
    expect([total(1_670_000_000, "https://next.example/"), total(1)]).toEqual([1_670_000_000, 1]);
    expect([total(1, "https://next.example/"), total(0), total("many"), total(-1), total(null)]).toEqual([
      0, 0, 0, 0, 0,
    ]);
    expect(pageWithRow({ search_information: "none" }).totalResultsCount).toBe(0);
  });

  test("has more pages if it says so, or if it has no pagination", () => {
    const more = (pagination: object) => pageWithRow(pagination).hasMore;
    expect(more({ serpapi_pagination: { current: 1, next: "https://serpapi.example/?start=10" } })).toBe(true);
    expect(more({ serpapi_pagination: { current: 4 }, pagination: { current: 4 } })).toBe(false);
    expect(more({ pagination: { current: 1, next: "https://google.example/?start=10" } })).toBe(true);
    expect(more({})).toBe(true);
  });

  test("has the cost of one search", () => {
    expect(pageWithRow({}).costMicroUsd).toBe(25_000);
  });
});

test.each([
  ["https://www.pumps.example › garden", "pumps.example"],
  ["Ann Pump · LinkedIn", ""],
  [undefined, ""],
])(
  "a result with an encrypted redirect of Google has the domain of its breadcrumb: %s is %j",
  (displayed_link, domain) => {
    for (const link of ["https://www.google.com/goto?url=CAESbgHrOzAV", "/goto?url=CAESbgHrOzAV"]) {
      const parts = {
        organic_results: [{ ...row, link, displayed_link }],
        answer_box: { title: "Pumps", link, displayed_link },
      };
      expect(pageOf(parts).elements).toMatchObject([
        { type: "featured_snippet", url: "", domain },
        { type: "organic", url: "", domain },
      ]);
    }
  },
);

test("a row that cannot be read does not cost the page its other elements, even if no organic result is left", () => {
  const parts = { organic_results: [{ title: "Wells" }], related_searches: [{ query: "pumps" }] };
  expect(pageOf(parts)).toMatchObject({ elements: [{ type: "related_searches" }], unreadableRows: 1 });
});

test("a result without a title is read without it", () => {
  const page = pageOf({ organic_results: [{ ...row, title: ["Pumps"] }] });
  expect(page).toMatchObject({ elements: [{ type: "organic", title: "", url: row.link }] });
  expect(page).not.toHaveProperty("unreadableRows");
});

test("a video without an address has that of its first key moment, without the time", () => {
  const key_moments = [
    { time: "00:00", title: "Intro", link: "https://video.example/watch?v=1&t=0" },
    { time: "01:20", text: "Priming", link: "https://video.example/watch?v=1&t=80" },
  ];
  const [found] = pageOf({ organic_results: [{ title: "Pumping", duration: "3:14", key_moments }] }).elements;
  expect(found).toMatchObject({
    title: "Pumping",
    url: "https://video.example/watch?v=1",
    richSnippet: { top: ["3:14"] },
    siteLinks: [
      { title: "Intro", url: "https://video.example/watch?v=1&t=0", description: "00:00" },
      { title: "Priming", url: "https://video.example/watch?v=1&t=80", description: "01:20" },
    ],
  });
});

describe("a page without organic results", () => {
  const related_searches = [{ query: "pumps" }];

  test.each([
    ["no list", {}],
    ["null in place of the list", { organic_results: null }],
  ])("but with other elements is answered: %s", (_, parts) => {
    expect(readJson(200, { search_metadata: succeededMetadata, related_searches, ...parts })).toMatchObject({
      elements: [{ type: "related_searches" }],
      hasMore: false,
    });
  });

  test("has more pages if it says so", () => {
    const serpapi_pagination = { current: 1, next: "https://serpapi.example/?start=10" };
    expect(pageOf({ related_searches, serpapi_pagination }).hasMore).toBe(true);
  });

  test("counts what is in place of the list", () => {
    expect(pageOf({ related_searches, organic_results: { first: row } })).toMatchObject({ unreadableRows: 1 });
  });
});

describe("the keyword that Google searched", () => {
  const searchedFor = (search_information: object) =>
    pageOf({ organic_results: [row], search_information }).searchedKeyword;

  test.each([
    ["Some results for exact spelling but showing fixed spelling", { showing_results_for: "garden pump" }],
    ["Empty showing fixed spelling results", { showing_results_for: "garden pump", spelling_fix: "garden pump" }],
    ["Empty showing fixed spelling results", { spelling_fix: "garden pump" }],
    ["Including results for spelling fix", { spelling_fix: "<b>garden</b> pump" }],
    ["", { showing_results_for: "garden pump" }],
  ])("is on the page if Google corrected the spelling: %s", (organic_results_state, fields) => {
    expect(searchedFor({ organic_results_state, query_displayed: "gardn pump", ...fields })).toBe("garden pump");
  });

  test.each([
    ["Results for exact spelling", {}],
    ["Showing results for exact spelling despite spelling suggestion", { spelling_fix: "garden pump" }],
    ["Fully empty", {}],
    ["", { spelling_fix: "garden pump" }],
  ])("is not told if it only suggested a correction: %s", (organic_results_state, fields) => {
    expect(searchedFor({ organic_results_state, query_displayed: "gardn pump", ...fields })).toBeUndefined();
  });
});

describe("an AI overview that the page only announces", () => {
  const open = (settings: Record<string, string>) => openSerpapi(engineConfig({ SERPAPI_API_KEY: key, ...settings }));

  test("has a key, which is not read where the text came with the page", () => {
    expect(pageWithRow({ ai_overview: { page_token: "t1", serpapi_link: "https://serpapi.example/" } })).toMatchObject({
      elements: [{ type: "ai_overview", description: "" }, { type: "organic" }],
      overviewToken: "t1",
    });
    const ai_overview = { page_token: "t1", text_blocks: [{ type: "paragraph", snippet: "Water." }] };
    expect(pageWithRow({ ai_overview })).not.toHaveProperty("overviewToken");
  });

  test.each<[string, object, object]>([
    [
      "its text",
      { ai_overview: { text_blocks: [{ type: "paragraph", snippet: "Water." }] } },
      { elements: [{ type: "ai_overview", description: "Water." }], costMicroUsd: 25_000 },
    ],
    ["an expired key", { search_metadata: { status: "Error" }, error: "Expired." }, { failure: "unavailable" }],
    ["no text", { ai_overview: { error: "None." } }, { failure: "unreadable", costMicroUsd: 25_000 }],
  ])("is read from the answer with %s", (_, answer, expected) => {
    const body = JSON.stringify({ search_metadata: succeededMetadata, ...answer });
    expect(open({ SERPAPI_AI_OVERVIEW: "on" }).overview?.read({ status: 200, headers: {}, body })).toMatchObject(
      expected,
    );
  });
});

test.each([
  ["Atlantis, United States` location - location", "location"],
  ["xx` Google country - gl", "location"],
  ["xx` interface language - hl", "language"],
])("an unsupported parameter refuses the query, with the field: %s", (parameter, field) => {
  const error = `Unsupported \`${parameter} parameter.`;
  expect(readJson(400, { error })).toEqual({ failure: "query_refused", field });
});

test("a search that failed by its own state says nothing about the load, other than a 503 without one", () => {
  expect(readJson(503, failedSearch)).toEqual({ failure: "unavailable", overloaded: false });
  expect(readJson(503, { error: failedSearch.error })).toEqual({ failure: "unavailable" });
});

describe("an empty page is a success", () => {
  const empty = { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 25_000 };
  const fullyEmpty = { organic_results_state: "Fully empty" };
  test.each([
    ["if error and state say that Google has no results", { search_information: fullyEmpty, error: noResultsMessage }],
    ["if only the error says so", { error: noResultsMessage }],
    ["if only the state says so", { search_information: fullyEmpty }],
    [
      "if the list is present and empty",
      { organic_results: [], serpapi_pagination: { next: "https://next.example/" } },
    ],
  ])("%s", (_, parts) => {
    expect(readJson(200, { search_metadata: succeededMetadata, ...parts })).toEqual(empty);
  });

  test("and keeps its other elements", () => {
    const parts = {
      search_metadata: succeededMetadata,
      error: noResultsMessage,
      related_searches: [{ query: "pumps" }],
    };
    expect(readJson(200, parts)).toMatchObject({ elements: [{ type: "related_searches" }], hasMore: false });
  });

  test.each([
    ["nothing but a status", { search_metadata: succeededMetadata }],
    [
      "elements with nothing in them, and not a word about results",
      { search_metadata: succeededMetadata, related_searches: [], answer_box: { type: "unknow" } },
    ],
    [
      "other elements beside an unknown error",
      { search_metadata: succeededMetadata, related_searches: [{ query: "a" }], error: "Else." },
    ],
    ["an empty list without a status", { organic_results: [] }],
    ["the sentence of an empty page without a status", { error: noResultsMessage }],
    ["nothing", {}],
  ])("but not %s", (_, json) => {
    expect(readJson(200, json)).toMatchObject({ failure: "unreadable" });
  });
});

test("a key that an answer repeats is removed", () => {
  const link = `https://serpapi.example/search.json?q=a&api_key=${key}`;
  const page = pageOf({ organic_results: [{ title: key, link }], other_results: [{ title: "a", link, snippet: key }] });
  expect(page.elements).toHaveLength(2);
  expect(JSON.stringify(page)).not.toContain(key);
});

function organicOf(fields: object): Element {
  const [found] = elementsOf({ organic_results: [{ ...row, ...fields }] });
  if (found === undefined) throw new Error("A page with a result has one.");
  return found;
}
