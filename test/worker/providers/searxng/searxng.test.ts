import { describe, expect, test } from "vitest";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { pageIn, readWith } from "../../../harness/fixtures/read-page.ts";
import { answerWith, row } from "../../../harness/fixtures/searxng-page.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080" }));

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

const pageOf = (fields: object) => pageIn(readWith(searxng, 200, answerWith(fields)));
