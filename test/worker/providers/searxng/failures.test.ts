import { expect, test } from "vitest";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import type { Failure, Page } from "../../../../worker/providers/provider.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { answerWith } from "../../../harness/fixtures/searxng-page.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080" }));
const found = { url: "https://pumps.example/1", title: "Pumps", engine: "google", engines: ["google"], positions: [1] };

test("an empty list without failed engines is an empty page and the last one", () => {
  expect(read({})).toEqual({ elements: [], totalResultsCount: 0, hasMore: false, costMicroUsd: 0 });
});

test("results are returned even if SearXNG also reports a timeout of Google", () => {
  expect(read({ results: [found], unresponsive_engines: [["google", "timeout"]] })).toMatchObject({ hasMore: true });
});

test.each([
  ["a row of Bing", { results: [found, { ...found, engine: "bing", engines: ["bing"] }] }],
  ["a row that Bing had too", { results: [{ ...found, engines: ["google", "bing"] }] }],
  ["a failure of Bing and no rows", { unresponsive_engines: [["bing", "timeout"]] }],
  ["Google's news search", { results: [{ ...found, engine: "google news", engines: ["google news"] }] }],
  ["a row of an engine that was not asked", { results: [{ ...found, engine: "google cse", engines: ["google cse"] }] }],
  ["an infobox of Wikipedia", { infoboxes: [{ infobox: "Pump", engine: "wikipedia", engines: ["wikipedia"] }] }],
])("results of another engine are never returned as Google's: %s", (_, fields) => {
  expect(read(fields)).toEqual({ failure: "account_refused" });
});

test.each([
  ["an answerer", [{ answer: "17", engine: "answerer: random" }]],
  ["an answer without an engine", [{ answer: "17" }]],
  ["an answer in its former form", ["17"]],
])("a keyword that the instance answers itself is refused: %s", (_, answers) => {
  expect(read({ answers })).toEqual({ failure: "query_refused" });
});

test.each<[string, object]>([
  ["no results part", { results: undefined }],
  ["only a result that is a text", { results: ["x"] }],
  ["a list of nothing", { results: [null, {}] }],
  ["only a result without any text", { results: [{ engine: "google" }] }],
  ["only a result whose texts are lists", { results: [{ engine: "google", url: [], title: ["x"], content: {} }] }],
  ["a result with an empty engine", { results: [{ ...found, engine: "" }] }],
  ["a result without an engine", { results: [{ ...found, engine: undefined }] }],
  ["no rows and no list of failures", { unresponsive_engines: undefined }],
  ["no rows and failures in an unknown form", { unresponsive_engines: [{ google: "CAPTCHA" }] }],
  ["no rows and failures that are a text", { unresponsive_engines: "google" }],
  ["no rows and answers that are a text", { answers: "17" }],
  ["no rows and infoboxes that are null", { infoboxes: null }],
])("an answer of SearXNG with %s is unreadable", (_, fields) => {
  expect(read(fields)).toEqual({ failure: "unreadable" });
});

test("a row of SearXNG that cannot be read is counted, and the others are returned", () => {
  const results = ["x", { engine: "google" }, found, { ...found, engine: 7 }, null, {}];
  const page = read({ results });
  expect(page).toMatchObject({ elements: [{ title: "Pumps" }], unreadableRows: 3, hasMore: true });
  expect(read({ results: [found, null, {}] })).not.toHaveProperty("unreadableRows");
});

test("a result of SearXNG without title or link has what it has", () => {
  const results = [
    { ...found, url: undefined },
    { ...found, title: ["x"], positions: [2] },
  ];
  expect(read({ results })).toMatchObject({
    elements: [
      { title: "Pumps", url: "" },
      { title: "", url: "https://pumps.example/1" },
    ],
  });
});

test("suggestions are returned although the list of results is missing, unless an engine failed", () => {
  const fields = { results: undefined, suggestions: ["pump repair"] };
  expect(read(fields)).toMatchObject({ elements: [{ type: "related_searches" }], hasMore: false });
  expect(read({ ...fields, unresponsive_engines: [["google", "CAPTCHA"]] })).toEqual({ failure: "blocked" });
});

test("an instance that is asked for Google's custom search answers from it, and fails with it", () => {
  const cse = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example", SEARXNG_ENGINES: "google cse" }));
  const custom = { ...found, engine: "google cse", engines: ["google cse"], content: "Mar 12, 2024 ... Ten pumps." };
  expect(read({ results: [custom] }, cse)).toMatchObject({
    elements: [{ type: "organic", description: "Ten pumps.", richSnippet: { top: ["Mar 12, 2024"] } }],
  });
  expect(read({ unresponsive_engines: [["google cse", "too many requests"]] }, cse)).toEqual({ failure: "blocked" });
  expect(read({ results: [found] }, cse)).toEqual({ failure: "account_refused" });
});

test("optional fields in an unexpected form are left out, and the rest of the page is kept", () => {
  const odd = { content: ["x"], publishedDate: [], engines: "google", positions: { 0: 1 } };
  const page = read({
    results: [{ ...found, ...odd }],
    answers: { a: 1 },
    infoboxes: ["x"],
    suggestions: [{}, "pump repair"],
    unresponsive_engines: null,
  });
  expect(page).toMatchObject({
    elements: [
      { type: "organic", title: "Pumps", description: "", richSnippet: { top: [], bottom: [] } },
      { type: "related_searches", siteLinks: [{ title: "pump repair" }] },
    ],
  });
});

test("a list of 40,000 positions is read", () => {
  const positions = Array.from({ length: 40_000 }, (_, position) => position);
  expect(read({ results: [{ ...found, positions }, found] })).toMatchObject({ hasMore: true });
});

function read(fields: object, provider = searxng): Page | Failure {
  return provider.read({ status: 200, headers: {}, body: JSON.stringify(answerWith(fields)) });
}
