import { describe, expect, test } from "vitest";
import { pageOf, readJson, row, succeededMetadata } from "../../../harness/fixtures/serpapi-page.ts";

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
