import { describe, expect, test } from "vitest";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { pageIn, readWith } from "../../../harness/fixtures/read-page.ts";
import { answerWith, partsWithEveryElement, row } from "../../../harness/fixtures/searxng-page.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080" }));

describe("a page of SearXNG", () => {
  test("a result has its texts, with its date apart from the snippet", () => {
    const page = pageOf({
      results: [
        row({
          title: "Pumps &amp; hoses<script>x</script>",
          url: "https://www.pumps.example/all",
          content: "1 apr 2013 — Ten <b>pumps</b> — tried.",
        }),
      ],
    });
    expect(page).toEqual({
      elements: [
        {
          type: "organic",
          title: "Pumps & hosesx",
          url: "https://www.pumps.example/all",
          domain: "pumps.example",
          breadcrumb: "",
          description: "Ten pumps — tried.",
          richSnippet: { top: ["1 apr 2013"], bottom: [] },
          siteLinks: [],
        },
      ],
      totalResultsCount: 0,
      hasMore: true,
      costMicroUsd: 0,
    });
  });

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

  test("a separate date is above the snippet; author, length, views and metadata are below", () => {
    const fields = {
      publishedDate: "2024-03-12T08:00:00",
      author: "Ann",
      views: "1.2K",
      metadata: "Guide",
      length: 65,
    };
    expect(pageOf({ results: [row(fields)] }).elements[0]?.richSnippet).toEqual({
      top: ["2024-03-12"],
      bottom: ["Ann", "65", "1.2K", "Guide"],
    });
  });

  test.each([
    [{ publishedDate: "2024-03-12 08:00:00+00:00" }, "2024-03-12"],
    [{ publishedDate: null, pubdate: "2024-03-12 08:00:00" }, "2024-03-12"],
    [{ publishedDate: "Tue, 12 Mar 2024" }, "Tue, 12 Mar 2024"],
  ])("the date of %j is %j", (fields, date) => {
    expect(pageOf({ results: [row(fields)] }).elements[0]?.richSnippet.top).toEqual([date]);
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

  test("elements beside the results have their texts and links", () => {
    const { elements } = pageOf(partsWithEveryElement);
    expect(elements[0]).toMatchObject({ title: "corrections", siteLinks: [{ title: "garden pump" }] });
    // Offered by the engine, which searched the keyword as typed.
    expect(pageOf(partsWithEveryElement)).not.toHaveProperty("searchedKeyword");
    expect(elements[1]).toMatchObject({ url: "https://wiki.example/pump", description: "It moves water." });
    expect(elements[3]).toMatchObject({ description: "Pumpe, bomba" });
    expect(elements[5]).toMatchObject({
      title: "Pump",
      description: "A machine.",
      richSnippet: { bottom: ["Invented: long ago"] },
      siteLinks: [
        { title: "Wiki", url: "https://wiki.example/pump" },
        { title: "Hose", description: "Things" },
      ],
    });
    expect(elements.at(-1)?.siteLinks.map(({ title }) => title)).toEqual(["pump repair", "pump noise"]);
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
