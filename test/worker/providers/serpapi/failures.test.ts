import { describe, expect, test } from "vitest";
import { pageOf, readJson, serpapiKey as key, succeededMetadata } from "../../../harness/fixtures/serpapi-page.ts";
import { failedSearch, noResultsMessage } from "../provider-failures.ts";

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
