import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { result } from "../../../shared/results.ts";
import { openSearxng } from "../../../worker/engine/providers/searxng.ts";
import type { Failure, Page } from "../../../worker/engine/provider.ts";
import { engineConfig } from "../../harness/queries.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080" }));
const element = result.omit({ rank: true });

describe("a page of SearXNG", () => {
  test("a result has its texts, and its date beside the snippet", () => {
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
    ["Top 10 pumps — tried in 2024.", [], "Top 10 pumps — tried in 2024."],
    ["Apr 1, 2013 was a Monday.", [], "Apr 1, 2013 was a Monday."],
  ])("of %j the date is %j", (content, top, description) => {
    expect(pageOf({ results: [row({ content })] }).elements).toMatchObject([{ description, richSnippet: { top } }]);
  });

  test("a date of its own, author and the like stand beside and under the snippet", () => {
    const told = { publishedDate: "2024-03-12T08:00:00", author: "Ann", views: "1.2K", metadata: "Guide", length: 65 };
    expect(pageOf({ results: [row(told)] }).elements[0]?.richSnippet).toEqual({
      top: ["2024-03-12"],
      bottom: ["Ann", "65", "1.2K", "Guide"],
    });
  });

  test("results come in the order of Google's page, and not by score", () => {
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

  test("every kind of element comes out, in page order and in the shape of the contract", () => {
    const { elements } = pageOf(everything);
    expect(elements.map(({ type }) => type)).toEqual([
      "other",
      "featured_snippet",
      "answer_box",
      "answer_box",
      "other",
      "knowledge_graph",
      "organic",
      "video",
      "images",
      "shopping",
      "local_pack",
      "other",
      "related_searches",
    ]);
    expect(elements.map((found) => element.parse(found))).toEqual(elements);
    expect(elements[0]).toMatchObject({ title: "corrections", siteLinks: [{ title: "garden pump" }] });
    expect(elements[1]).toMatchObject({ url: "https://wiki.example/pump", description: "It moves water." });
    expect(elements[3]).toMatchObject({ description: "Pumpe, bomba" });
    expect(elements[5]).toMatchObject({
      title: "Pump",
      description: "A machine.",
      richSnippet: { bottom: ["Invented: long ago"] },
      siteLinks: [{ title: "Wiki", url: "https://wiki.example/pump" }, { title: "Hose" }],
    });
    expect(elements.at(-1)?.siteLinks.map(({ title }) => title)).toEqual(["pump repair", "pump noise"]);
  });

  test("what the instance adds by itself is not Google's and stays out", () => {
    const own = [
      { answer: "198.51.100.7", engine: "plugin: self_info" },
      { answer: "2", engine: null },
      "formerly a text",
    ];
    const page = pageOf({ results: [row({}), row({ engine: "plugin: x", engines: ["plugin: x"] })], answers: own });
    expect(page.elements.map(({ type }) => type)).toEqual(["organic"]);
  });
});

const recorded = new URL("../../../../shared/fixtures/searxng/", import.meta.url);
const recordedNames = existsSync(recorded) ? readdirSync(recorded).filter((name) => name.endsWith(".json")) : [];

test.skipIf(recordedNames.length === 0)(
  "all that the recorded result holds comes out (skipped where ../shared/fixtures/searxng does not lie beside the project)",
  () => {
    for (const name of recordedNames) {
      const found: unknown = JSON.parse(readFileSync(new URL(name, recorded), "utf8"));
      const [only, ...others] = pageOf({ results: [found] }).elements;
      expect(others).toEqual([]);
      expect(only).toMatchObject({ type: "organic", richSnippet: { top: [expect.stringMatching(/^\d.* \d{4}$/)] } });
      expect([only?.title, only?.domain, only?.description]).not.toContain("");
      expect(found).toMatchObject({ title: only?.title, url: only?.url });
    }
  },
);

const everything = {
  number_of_results: 12,
  results: [
    row({}),
    row({ template: "videos.html" }),
    row({ template: "images.html", url: null }),
    row({ template: "products.html", price: "$99" }),
    row({ template: "map.html" }),
    row({ template: "paper.html", url: undefined }),
  ],
  answers: [
    { answer: "It moves water.", url: "https://wiki.example/pump", engine: "google", template: "answer/legacy.html" },
    { answer: "42", url: null, engine: "google" },
    { translations: [{ text: "Pumpe" }, { text: "bomba" }], engine: "google", template: "answer/translations.html" },
    { current: { summary: "Rain" }, engine: "google", template: "answer/weather.html" },
  ],
  infoboxes: [
    {
      infobox: "Pump",
      content: "A machine.",
      engine: "google",
      engines: ["google"],
      attributes: [{ label: "Invented", value: "long ago" }, { label: "Image" }],
      urls: [{ title: "Wiki", url: "https://wiki.example/pump" }],
      relatedTopics: [{ name: "Things", suggestions: ["Hose"] }],
    },
  ],
  suggestions: ["pump repair", "", "pump noise", null],
  corrections: ["garden pump"],
};

function row(fields: object): object {
  const told = { url: "https://pumps.example/1", title: "Pumps", content: "All.", template: "default.html" };
  const found = { engine: "google", engines: ["google"], positions: [1], score: 1, category: "general" };
  return { ...told, ...found, parsed_url: ["https", "pumps.example", "/1", "", "", ""], ...fields };
}

function pageOf(fields: object): Page {
  const nothing = { query: "garden pump", results: [], answers: [], corrections: [], infoboxes: [], suggestions: [] };
  const body = JSON.stringify({ ...nothing, unresponsive_engines: [], ...fields });
  const page: Page | Failure = searxng.read({ status: 200, headers: {}, body });
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page;
}
