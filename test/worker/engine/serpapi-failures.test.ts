import { describe, expect, test } from "vitest";
import type { Failure, Page } from "../../../worker/engine/provider.ts";
import { openSerpapi } from "../../../worker/engine/providers/serpapi.ts";
import { engineConfig } from "../../harness/queries.ts";

const key = "0123456789abcdef-of-a-test";
const serpapi = openSerpapi(engineConfig({ SERPAPI_API_KEY: key }));
const success = { id: "1", status: "Success" };
const row = { title: "Pumps", link: "https://pumps.example/" };
const noResults = "Google hasn't returned any results for this query.";
const noSearches = "Your account has run out of searches.";

describe("a failure has its kind", () => {
  test.each([
    [400, "Missing query `q` parameter.", { failure: "request_refused" }],
    [
      400,
      "Unsupported `Atlantis, United States` location - location parameter.",
      { failure: "query_refused", field: "location" },
    ],
    [400, "Unsupported `xx` Google country - gl parameter.", { failure: "query_refused", field: "location" }],
    [400, "Unsupported `xx` interface language - hl parameter.", { failure: "query_refused", field: "language" }],
    [400, "Unsupported `fridge` device - device parameter.", { failure: "request_refused" }],
    [
      401,
      "Invalid API key. Your API key should be here: https://serpapi.example/manage-api-key",
      { failure: "account_refused" },
    ],
    [403, "", { failure: "account_refused" }],
    [402, "", { failure: "account_refused" }],
    [404, "", { failure: "request_refused" }],
    [410, "", { failure: "request_refused" }],
    [429, noSearches, { failure: "account_refused" }],
    [429, "You are exceeding the hourly throughput limit.", { failure: "rate_limited" }],
    [429, "", { failure: "rate_limited" }],
    [408, "", { failure: "unavailable" }],
    [500, "", { failure: "unavailable" }],
    [503, "We couldn't get valid results for this search. Please try again later.", { failure: "unavailable" }],
    [503, noResults, { failure: "unavailable" }],
    [202, "", { failure: "unreadable" }],
    [204, "", { failure: "unreadable" }],
  ])("status %i with %j", (status, error, failure) => {
    expect(readJson(status, { error })).toEqual(failure);
    expect(readJson(status, { search_metadata: success, organic_results: [row], error })).toEqual(failure);
    expect(serpapi.read({ status, headers: {}, body: "<html>" })).toHaveProperty("failure");
  });

  test.each([
    ["no credit", { error: "Your account credit is too low, please add more credits." }, "account_refused"],
    ["no searches", { error: noSearches }, "account_refused"],
    ["a search that failed", { search_metadata: { status: "Error" }, error: "Try again." }, "unavailable"],
    [
      "a search that failed, with results",
      { search_metadata: { status: "Error" }, organic_results: [row] },
      "unavailable",
    ],
    ["a search that still runs", { search_metadata: { status: "Processing" } }, "timeout"],
    ["a search that waits", { search_metadata: { status: "Queued" }, organic_results: [] }, "timeout"],
    ["a status that is new", { search_metadata: { status: "Perhaps" }, organic_results: [row] }, "unreadable"],
    ["an error that is new", { search_metadata: success, error: "Something else." }, "unreadable"],
    [
      "an error that is new, with an empty list",
      { search_metadata: success, organic_results: [], error: "Else." },
      "unreadable",
    ],
    ["results without a status, but with an error", { organic_results: [row], error: "Else." }, "unreadable"],
  ])("under status 200: %s", (_, json, failure) => {
    expect(readJson(200, json)).toEqual({ failure });
  });
});

describe("an empty page is a success", () => {
  const empty = { elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 25_000 };
  const fullyEmpty = { organic_results_state: "Fully empty" };
  test.each([
    ["where they say that Google has none", { search_information: fullyEmpty, error: noResults }],
    ["where only the error says so", { error: noResults }],
    ["where only the state says so", { search_information: fullyEmpty }],
    [
      "where the list is there and empty",
      { organic_results: [], serpapi_pagination: { next: "https://next.example/" } },
    ],
  ])("%s", (_, parts) => {
    expect(readJson(200, { search_metadata: success, ...parts })).toEqual(empty);
  });

  test("and keeps its other elements", () => {
    const parts = { search_metadata: success, error: noResults, related_searches: [{ query: "pumps" }] };
    expect(readJson(200, parts)).toMatchObject({ elements: [{ type: "related_searches" }], hasMore: false });
  });

  test.each([
    ["nothing but a status", { search_metadata: success }],
    ["other elements, and not a word about results", { search_metadata: success, related_searches: [{ query: "a" }] }],
    ["an empty list without a status", { organic_results: [] }],
    ["the sentence of an empty page without a status", { error: noResults }],
    ["nothing", {}],
  ])("but not %s", (_, json) => {
    expect(readJson(200, json)).toEqual({ failure: "unreadable" });
  });
});

test("an answer that repeats the key does not hand it on", () => {
  const link = `https://serpapi.example/search.json?q=a&api_key=${key}`;
  const page = pageOf({ organic_results: [{ title: key, link }], other_results: [{ title: "a", link, snippet: key }] });
  expect(page.elements).toHaveLength(2);
  expect(JSON.stringify(page)).not.toContain(key);
});

function readJson(status: number, json: unknown): Page | Failure {
  return serpapi.read({ status, headers: {}, body: JSON.stringify(json) });
}

function pageOf(parts: object): Page {
  const page = readJson(200, { search_metadata: success, ...parts });
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page;
}
