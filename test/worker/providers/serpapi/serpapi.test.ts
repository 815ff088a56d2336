import { describe, expect, test } from "vitest";
import type { Element } from "../../../../worker/providers/provider.ts";
import { elementsOf, pageWithRow, row } from "../../../harness/fixtures/serpapi-page.ts";

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

function organicOf(fields: object): Element {
  const [found] = elementsOf({ organic_results: [{ ...row, ...fields }] });
  if (found === undefined) throw new Error("A page with a result has one.");
  return found;
}
