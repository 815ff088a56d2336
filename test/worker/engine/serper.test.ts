import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ConfigError } from "../../../shared/config.ts";
import { result } from "../../../shared/results.ts";
import type { Failure, Page } from "../../../worker/engine/provider.ts";
import { openSerper } from "../../../worker/engine/providers/serper.ts";
import { engineConfig, query } from "../../harness/queries.ts";

const serper = openSerper(
  engineConfig({ SERPER_API_KEY: "key-of-a-test", SERPER_BASE_URL: "https://serper.example/" }),
);
const element = result.omit({ rank: true });

describe("request", () => {
  test("a search for a country sends country and language, the key only in its header", () => {
    const request = serper.request(query({ location: "UK", language: "pt-BR" }), 3);
    expect(request).toMatchObject({ method: "POST", url: "https://serper.example/search" });
    expect(request.headers["x-api-key"]).toBe("key-of-a-test");
    expect(JSON.parse(request.body)).toEqual({ q: "garden pump", gl: "gb", hl: "pt-br", num: 10, page: 3 });
  });

  test("a place travels with its country", () => {
    const request = serper.request(query({ location: "Lyon, France" }), 1);
    expect(JSON.parse(request.body)).toMatchObject({ gl: "fr", location: "Lyon,France" });
  });

  test("a worker without the key says which setting is missing", () => {
    expect(() => openSerper(engineConfig({}))).toThrow(ConfigError);
    expect(() => openSerper(engineConfig({}))).toThrow("SERPER_API_KEY");
  });
});

describe("a page", () => {
  test("an organic result has its texts, rating, date, attributes and site links", () => {
    const { elements, costMicroUsd, hasMore } = pageOf({
      credits: 2,
      organic: [
        {
          title: "Pumps &amp; hoses",
          link: "https://www.pumps.example/all",
          snippet: "Ten <b>pumps</b>.",
          date: "3 days ago",
          rating: 4.8,
          ratingCount: 1234,
          attributes: { Brand: "Nimbus", Power: 900 },
          sitelinks: [
            { title: "Deep well", link: "https://www.pumps.example/deep" },
            { title: "Again", link: "https://www.pumps.example/deep" },
          ],
          position: 1,
        },
      ],
    });
    expect(elements).toEqual([
      {
        type: "organic",
        title: "Pumps & hoses",
        url: "https://www.pumps.example/all",
        domain: "pumps.example",
        breadcrumb: "",
        description: "Ten pumps.",
        richSnippet: { top: ["4.8 (1,234)", "3 days ago"], bottom: ["Brand: Nimbus", "Power: 900"] },
        siteLinks: [{ title: "Deep well", url: "https://www.pumps.example/deep", description: "" }],
      },
    ]);
    expect([costMicroUsd, hasMore]).toEqual([2_000, true]);
  });

  test("every kind of element comes out, once and in page order, with its links inside", () => {
    const { elements } = pageOf(everything);
    expect(elements.map(({ type }) => type)).toEqual([
      "paid",
      "featured_snippet",
      "knowledge_graph",
      "top_stories",
      "local_pack",
      "organic",
      "people_also_ask",
      "images",
      "video",
      "shopping",
      "discussions",
      "other",
      "other",
      "related_searches",
    ]);
    expect(z.array(element).parse(elements)).toEqual(elements);
    const linksOf = (type: string) => elements.find((found) => found.type === type)?.siteLinks;
    expect(linksOf("people_also_ask")).toEqual([
      { title: "Which pump?", url: "https://faq.example/1", description: "A small one." },
    ]);
    expect(linksOf("local_pack")).toEqual([
      { title: "Pump Shop", url: "https://shop.example/", description: "4.5 (12) · Hardware · 1 Main Street" },
    ]);
    expect(linksOf("related_searches")?.map(({ title }) => title)).toEqual(["pump repair", "pump noise"]);
  });

  test("an answer without a source is an answer box", () => {
    const { elements } = pageOf({ organic: [], answerBox: { title: "7 × 6", answer: "42" } });
    expect(elements).toMatchObject([{ type: "answer_box", title: "7 × 6", description: "42", url: "" }]);
  });

  test("a knowledge panel has no link of its own", () => {
    const [panel] = pageOf({ organic: [], knowledgeGraph: everything.knowledgeGraph }).elements;
    expect(panel).toMatchObject({
      url: "",
      domain: "",
      richSnippet: { top: ["Machine"], bottom: ["Invented: long ago"] },
    });
    expect(panel?.siteLinks.map(({ url }) => url)).toEqual(["https://pumps.example/", "https://wiki.example/pump"]);
  });

  test("a known element in an unknown form is kept as other, and the rest of the page stands", () => {
    const { elements } = pageOf({
      organic: [],
      peopleAlsoAsk: { items: [{ title: "Which?", link: "https://faq.example/" }] },
    });
    expect(elements).toMatchObject([{ type: "other", title: "peopleAlsoAsk", siteLinks: [{ title: "Which?" }] }]);
  });

  test("an address that is not of the web is not passed on", () => {
    const { elements } = pageOf({ organic: [{ title: "a", link: "javascript:alert(1)" }] });
    expect(elements).toMatchObject([{ url: "", domain: "" }]);
  });

  test("an empty page is a page, and the last one", () => {
    expect(pageOf({ organic: [] })).toEqual({
      elements: [],
      totalResultsCount: 0,
      hasMore: false,
      costMicroUsd: 1_000,
    });
  });
});

describe("a failure never looks like an empty page", () => {
  test.each([
    ["no organic part", { searchParameters: {} }],
    ["organic is null", { organic: null }],
    ["organic is an object", { organic: { title: "a", link: "https://a.example/" } }],
    ["a result without a link", { organic: [{ title: "a" }] }],
    ["a title that is a list", { organic: [{ title: ["a"], link: "https://a.example/" }] }],
    ["a list", [{ organic: [] }]],
    ["null", null],
    ["a refusal under status 200", { message: "Unauthorized.", statusCode: 403 }],
  ])("%s cannot be read", (_, body) => {
    expect(readJson(200, body)).toEqual({ failure: "unreadable" });
  });

  test.each(["", "<!doctype html>", '{"organic":[', "organic"])("%j is no JSON and cannot be read", (body) => {
    expect(serper.read({ status: 200, headers: {}, body })).toEqual({ failure: "unreadable" });
  });

  test.each([
    [403, "Unauthorized.", "account_refused"],
    [401, "", "account_refused"],
    [400, "Not enough credits", "account_refused"],
    [400, "Query pattern not allowed for free accounts.", "query_refused"],
    [400, "Missing query parameter", "request_refused"],
    [404, "Not found", "request_refused"],
    [429, "Too many requests", "rate_limited"],
    [500, "Internal server error", "unavailable"],
    [503, "", "unavailable"],
    [204, "", "unreadable"],
  ])("status %i with %j is %s", (status, message, failure) => {
    expect(readJson(status, { message, statusCode: status })).toEqual({ failure });
    expect(serper.read({ status, headers: {}, body: "<html>" })).toHaveProperty("failure");
  });
});

const recorded = new URL("../../../../shared/fixtures/serper/", import.meta.url);
const recordedNames = existsSync(recorded) ? readdirSync(recorded).filter((name) => name.endsWith(".json")) : [];

test.skipIf(recordedNames.length === 0)(
  "every organic result of the recorded answers comes out (skipped where ../shared/fixtures/serper does not lie beside the project)",
  () => {
    const links = z.object({ organic: z.array(z.object({ link: z.string() })) });
    for (const name of recordedNames) {
      const body = readFileSync(new URL(name, recorded), "utf8");
      const organic = pageOf(JSON.parse(body)).elements.filter(({ type }) => type === "organic");
      expect(organic.map(({ url }) => url)).toEqual(links.parse(JSON.parse(body)).organic.map(({ link }) => link));
      expect(
        z
          .array(element)
          .parse(organic)
          .every(({ title, domain }) => title !== "" && domain !== ""),
      ).toBe(true);
    }
  },
);

const everything = {
  searchParameters: { q: "garden pump", gl: "us" },
  credits: 1,
  answerBox: { title: "Pump", snippet: "Moves water.", link: "https://wiki.example/pump" },
  knowledgeGraph: {
    title: "Pump",
    type: "Machine",
    website: "https://pumps.example/",
    description: "Moves water.",
    descriptionSource: "Wiki",
    descriptionLink: "https://wiki.example/pump",
    attributes: { Invented: "long ago" },
  },
  organic: [{ title: "Pumps", link: "https://pumps.example/all", snippet: "All.", position: 1 }],
  peopleAlsoAsk: [{ question: "Which pump?", snippet: "A small one.", title: "FAQ", link: "https://faq.example/1" }],
  relatedSearches: [{ query: "pump repair" }, { query: "pump noise" }],
  topStories: [{ title: "Pump wins", link: "https://news.example/1", source: "News", date: "1 hour ago" }],
  places: [
    {
      title: "Pump Shop",
      address: "1 Main Street",
      rating: 4.5,
      ratingCount: 12,
      category: "Hardware",
      website: "https://shop.example/",
    },
  ],
  images: [{ title: "A pump", imageUrl: "https://img.example/1.png", link: "https://img.example/1" }],
  videos: [{ title: "Pumping", link: "https://video.example/1", channel: "Pump TV", duration: "3:14" }],
  shopping: [{ title: "Pump 900", link: "https://shop.example/900", price: "$99.00", source: "Shop" }],
  discussions: [{ title: "Loud pump?", link: "https://forum.example/1", source: "Forum" }],
  ads: [{ title: "Pumps now", link: "https://ads.example/", snippet: "Cheap." }],
  events: [{ title: "Pump fair", link: "https://fair.example/" }],
  refinements: { title: "Narrow it down", chips: ["solar", "deep well"] },
  somethingEmpty: [],
  took: 0.4,
};

function readJson(status: number, json: unknown): Page | Failure {
  return serper.read({ status, headers: {}, body: JSON.stringify(json) });
}

function pageOf(json: unknown): Page {
  const page = readJson(200, json);
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page;
}
