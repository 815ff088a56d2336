import { describe, expect, test } from "vitest";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import { pagesOf } from "../../../../shared/query/depth.ts";
import type { Transport } from "../../../../worker/providers/provider.ts";
import { googleOver } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { pageIn, readWith } from "../../../harness/fixtures/read-page.ts";
import { answerWith, row } from "../../../harness/fixtures/searxng-page.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080/search-of-mine/" }));

const found = { url: "https://pumps.example/1", title: "Pumps", engine: "google", engines: ["google"], positions: [1] };

describe("engines", () => {
  const open = (engines: string) =>
    openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example", SEARXNG_ENGINES: engines }));

  test.each([
    ["google", 10, "google"],
    ["google cse", 5, "google cse"],
    ["google cse, google", 10, "google cse,google"],
  ])("%s reaches depth 100 with %i calls", (engines, calls, sentAs) => {
    const provider = open(engines);
    expect(pagesOf(100, provider.organicPerPage)).toBe(calls);
    expect(sent(provider.request(query({ depth: 100 }), calls).body)).toMatchObject({
      engines: sentAs,
      pageno: String(calls),
    });
  });

  test.each([
    ["of Google's custom search", "google cse", []],
    ["of both engines while one is suspended", "google,google cse", [["google", "Suspended: CAPTCHA"]]],
  ])("depth 100 %s is five pages of 20 results", async (_, engines, suspended) => {
    const pages: string[] = [];
    const transport: Transport = async ({ body }) => {
      const page = sent(body)["pageno"] ?? "";
      pages.push(page);
      const results = Array.from({ length: 20 }, (__, at) => ({
        ...row({ engine: "google cse", engines: ["google cse"], url: `https://pumps.example/${page}/${at}` }),
        positions: [at + 1],
      }));
      const json = answerWith({ results, unresponsive_engines: suspended });
      return { status: 200, headers: {}, body: JSON.stringify(json) };
    };
    const answer = await googleOver({ ...open(engines), transport }).search(query({ depth: 100 }), 10_000);
    expect(pages.toSorted()).toEqual(["1", "2", "3", "4", "5"]);
    const urls = answer.ok ? answer.results.map(({ url }) => url) : [];
    expect([urls.length, urls[0], urls[99]]).toEqual([100, "https://pumps.example/1/0", "https://pumps.example/5/19"]);
  });

  test.each(["bing", "google,", "google cse;google"])("the list %j stops the start", (engines) => {
    expect(() => open(engines)).toThrow("expected a comma list of: google, google cse");
  });
});

test.each([
  ["pt-BR", "Portugal", "the dialect of another country"],
  ["es-419", "Mexico", "the dialect of a continent"],
  ["zh-Hant", "China", "another script than the country's"],
  ["zh", "United States", "Chinese where SearXNG does not know which"],
  ["sr-Latn", "Serbia", "a script that Google does not distinguish"],
  ["haw", "United States", "a language that Google does not restrict pages to"],
])("%s from %s is left to another provider: %s", async (language, location) => {
  expect(await googleOver(searxng).search(query({ language, location }), 1_000)).toMatchObject({
    code: "query_rejected",
    details: { reason: "unsupported", field: "language" },
    trace: { calls: [] },
  });
});

describe("a page of SearXNG", () => {
  test.each([
    ["3 days ago — A pump.", ["3 days ago"], "A pump."],
    ["Apr 1, 2013 · A pump.", ["Apr 1, 2013"], "A pump."],
    ["1 de abr. de 2013 — Una bomba.", ["1 de abr. de 2013"], "Una bomba."],
    ["12. März 2024 — Eine Pumpe.", ["12. März 2024"], "Eine Pumpe."],
    ["01.04.2013 — Eine Pumpe.", ["01.04.2013"], "Eine Pumpe."],
    ["2013年4月1日 — ポンプ", ["2013年4月1日"], "ポンプ"],
    ["2013. 4. 1. — 펌프", ["2013. 4. 1."], "펌프"],
    ["3 days ago ... A pump.", ["3 days ago"], "A pump."],
    ["Apr 1, 2013 … A pump.", ["Apr 1, 2013"], "A pump."],
    ["Top 10 pumps — tried in 2024.", [], "Top 10 pumps — tried in 2024."],
    ["Apr 1, 2013 was a Monday.", [], "Apr 1, 2013 was a Monday."],
  ])("in %j the date is %j", (content, top, description) => {
    expect(pageOf({ results: [row({ content })] }).elements).toMatchObject([{ description, richSnippet: { top } }]);
  });

  test.each([
    ["2024-03-12T08:00:00", "2024-03-12"],
    ["2024-03-12 08:00:00+00:00", "2024-03-12"],
    ["Tue, 12 Mar 2024", "Tue, 12 Mar 2024"],
  ])("a separate date is above the snippet: %s as %s", (publishedDate, date) => {
    expect(pageOf({ results: [row({ publishedDate })] }).elements).toMatchObject([
      { richSnippet: { top: [date], bottom: [] } },
    ]);
  });

  test("results are in the order of Google's page, not by score", () => {
    const titles = pageOf({
      results: [
        row({ title: "third and fifth", positions: [3, 5] }),
        row({ title: "first", positions: [1] }),
        row({ title: "nowhere", positions: "1" }),
        row({ title: "second", positions: [2] }),
      ],
    }).elements.map(({ title }) => title);
    expect(titles).toEqual(["first", "second", "third and fifth", "nowhere"]);
  });

  test("suggestions follow the results, as related searches", () => {
    const { elements } = pageOf({ results: [row({})], suggestions: ["pump repair", "", "pump noise", null] });
    expect(elements).toMatchObject([
      { type: "organic" },
      { type: "related_searches", siteLinks: [{ title: "pump repair" }, { title: "pump noise" }] },
    ]);
  });

  test("results that the instance adds itself are left out", () => {
    const own = [
      { answer: "198.51.100.7", engine: "plugin: self_info" },
      { answer: "2", engine: null },
      "formerly a text",
    ];
    const page = pageOf({ results: [row({}), row({ engine: "plugin: x", engines: ["plugin: x"] })], answers: own });
    expect(page.elements.map(({ type }) => type)).toEqual(["organic"]);
  });
});

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

const read = (fields: object, provider = searxng) => readWith(provider, 200, answerWith(fields));
const pageOf = (fields: object) => pageIn(read(fields));

function sent(body: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(body));
}
