import { describe, expect, test } from "vitest";
import { z } from "zod";
import { ConfigError } from "../../../../shared/config.ts";
import { result } from "../../../../shared/results.ts";
import type { Failure, Page } from "../../../../shared/providers/provider.ts";
import { openSerper } from "../../../../shared/providers/serper/serper.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";
import { pageWithEveryElement } from "../../../harness/fixtures/serper-page.ts";
import { serperFailures } from "../provider-failures.ts";

const serper = openSerper(
  engineConfig({ SERPER_API_KEY: "key-of-a-test", SERPER_BASE_URL: "https://serper.example/" }),
);
const element = result.omit({ rank: true });

describe("request", () => {
  test("a search for a country sends country and language, and the key only in its header", () => {
    const request = serper.request(query({ location: "UK", language: "pt-BR" }), 3);
    expect(request).toMatchObject({ method: "POST", url: "https://serper.example/search" });
    expect(request.headers["x-api-key"]).toBe("key-of-a-test");
    expect(JSON.parse(request.body)).toEqual({ q: "garden pump", gl: "gb", hl: "pt-br", num: 10, page: 3 });
  });

  test("a city is sent together with its country", () => {
    const request = serper.request(query({ location: "Lyon, France" }), 1);
    expect(JSON.parse(request.body)).toMatchObject({ gl: "fr", location: "Lyon,France" });
    const { body } = serper.request(query({ location: "Izmir, Turkey" }), 1);
    expect(JSON.parse(body)).toMatchObject({ gl: "tr", location: "Izmir,Turkiye" });
  });

  test("a missing key stops the start and is named", () => {
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

  test("every kind of element is extracted once, in page order, with its links", () => {
    const { elements } = pageOf(pageWithEveryElement);
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
    const [panel] = pageOf({ organic: [], knowledgeGraph: pageWithEveryElement.knowledgeGraph }).elements;
    expect(panel).toMatchObject({
      url: "",
      domain: "",
      richSnippet: { top: ["Machine"], bottom: ["Invented: long ago"] },
    });
    expect(panel?.siteLinks.map(({ url }) => url)).toEqual(["https://pumps.example/", "https://wiki.example/pump"]);
  });

  test("a known element in an unexpected form becomes `other`, and the rest of the page is kept", () => {
    const { elements } = pageOf({
      organic: [],
      peopleAlsoAsk: { items: [{ title: "Which?", link: "https://faq.example/" }] },
    });
    expect(elements).toMatchObject([{ type: "other", title: "peopleAlsoAsk", siteLinks: [{ title: "Which?" }] }]);
  });

  test("a URL that is not http or https is removed", () => {
    const { elements } = pageOf({ organic: [{ title: "a", link: "javascript:alert(1)" }] });
    expect(elements).toMatchObject([{ url: "", domain: "" }]);
  });

  test("an empty page is a success and the last page", () => {
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
  ])("%s is unreadable", (_, body) => {
    expect(readJson(200, body)).toEqual({ failure: "unreadable" });
  });

  test("an unreadable answer with credits has a cost", () => {
    const costly = { failure: "unreadable", costMicroUsd: 2_000 };
    expect(readJson(200, { organic: null, credits: 2 })).toEqual(costly);
    expect(readJson(200, { credits: 2 })).toEqual(costly);
    for (const credits of [0, -1, 0.5, "2", null])
      expect(readJson(200, { organic: null, credits })).toEqual({ failure: "unreadable" });
  });

  test.each(["", "<!doctype html>", '{"organic":[', "organic"])("%j is not JSON and unreadable", (body) => {
    expect(serper.read({ status: 200, headers: {}, body })).toEqual({ failure: "unreadable" });
  });

  test.each(serperFailures)("status %i with %j is %s", (status, message, failure) => {
    expect(readJson(status, { message, statusCode: status })).toEqual({ failure });
    expect(serper.read({ status, headers: {}, body: "<html>" })).toHaveProperty("failure");
  });
});

function readJson(status: number, json: unknown): Page | Failure {
  return serper.read({ status, headers: {}, body: JSON.stringify(json) });
}

function pageOf(json: unknown): Page {
  const page = readJson(200, json);
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page;
}
