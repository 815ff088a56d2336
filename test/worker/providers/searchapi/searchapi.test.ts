import { describe, expect, test } from "vitest";
import { openSearchapi } from "../../../../worker/providers/searchapi/searchapi.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { pageOf, partsWithEveryElement, readJson, succeeded } from "../../../harness/fixtures/searchapi-page.ts";
import { row } from "../../../harness/fixtures/serpapi-page.ts";
import { failedSearch } from "../provider-failures.ts";

/** SearchApi where it differs from SerpApi, whose shape its answers have. */

const open = (settings: Record<string, string> = {}) =>
  openSearchapi(engineConfig({ SEARCHAPI_API_KEY: "the-key", ...settings }));

/** The organic result with these further fields. */
const organicOf = (fields: object) => pageOf({ organic_results: [{ ...row, ...fields }] }).elements[0];
const elementOf = (type: string, parts: object) => pageOf(parts).elements.find((element) => element.type === type);

test("a search that failed by its own state says nothing about the load", () => {
  expect(readJson(503, failedSearch)).toEqual({ failure: "unavailable", overloaded: false });
});

describe("an organic result", () => {
  test("has its rating and votes, which are lines of their own, and the other lines below", () => {
    const extensions = ["5.0", "(90)", "Free delivery", "(not a count)"];
    const rich_snippet = { detected_extensions: { rating: 5, reviews: 90 }, extensions };
    expect(organicOf({ rich_snippet })?.richSnippet).toEqual({
      top: ["5 (90)"],
      bottom: ["Free delivery", "(not a count)"],
    });
  });

  test("has what its video tells, and the author that its source names, but no domain", () => {
    const video = { source: "Tube", channel: "Pump TV", date: "Feb 1, 2019", length: "3:14" };
    expect(organicOf({ video, source: "LinkedIn · Ann Pump", domain: "pumps.example" })?.richSnippet).toEqual({
      top: ["LinkedIn · Ann Pump", "Pump TV", "Feb 1, 2019", "3:14"],
      bottom: [],
    });
  });
});

test("an answer box that quotes a page leads there, and keeps the heading of its own", () => {
  expect(elementOf("featured_snippet", partsWithEveryElement)).toMatchObject({
    title: "Pump",
    url: "https://wiki.example/pump",
    breadcrumb: "https://wiki.example › pump",
    description: "Moves water.",
    richSnippet: { top: ["water", "1 day ago"], bottom: ["Answer date: 2020", "About: Pump/Use"] },
  });
  const answer_box = { type: "calculator", answer: "4", link: "https://www.google.com/search?q=2%2B2" };
  expect(elementOf("answer_box", { answer_box })).toMatchObject({ description: "4" });
});

test("a question has the page of its answer, and one without an answer is kept", () => {
  expect(elementOf("people_also_ask", partsWithEveryElement)?.siteLinks).toEqual([
    {
      title: "Which pump?",
      url: "https://faq.example/1",
      description: "A small one. · FAQ · Wiki · https://wiki.example › pump · 2020",
    },
    { title: "How old?", url: "", description: "9 years" },
    { title: "Why a pump?", url: "", description: "" },
  ]);
});

test("a picture leads to its page, and tells nothing of its size", () => {
  expect(elementOf("images", partsWithEveryElement)?.siteLinks).toEqual([
    { title: "A pump", url: "https://img.example/page", description: "Img" },
  ]);
});

describe("an AI Overview", () => {
  test("has headings, paragraphs and lists, the cited words and the references", () => {
    expect(elementOf("ai_overview", partsWithEveryElement)).toMatchObject({
      description: "About pumps · A pump moves water. Deep ones for wells.",
      siteLinks: [
        { title: "Pumps", url: "https://wiki.example/pump", description: "Wiki · It moves water." },
        { title: "moves water", url: "https://wells.example/", description: "" },
      ],
    });
  });

  test("that is only announced has a key", () => {
    const ai_overview = { error: "Google loads it later.", page_token: "t/1=" };
    expect(pageOf({ organic_results: [row], ai_overview })).toMatchObject({ overviewToken: "t/1=" });
  });

  test("is read from the answer to the second call, which is the overview itself and costs a search", () => {
    const text_blocks = [{ type: "paragraph", answer: "A pump moves water." }];
    const answer = { text_blocks, reference_links: [row], markdown: "A pump moves water." };
    const body = JSON.stringify({ search_metadata: succeeded, ...answer });
    const { overview } = open({ SEARCHAPI_AI_OVERVIEW: "on" });
    expect(overview?.read({ status: 200, headers: {}, body })).toMatchObject({
      elements: [{ type: "ai_overview", description: "A pump moves water.", siteLinks: [{ title: "Pumps" }] }],
      costMicroUsd: 4_000,
    });
  });

  test("that Google does not have is no element", () => {
    const ai_overview = { error: "An AI Overview is not available for this search" };
    expect(pageOf({ organic_results: [row], ai_overview }).elements).toHaveLength(1);
  });
});

test("the next page is asked for where the answer names one", () => {
  const hasMore = (pagination: object) => pageOf({ organic_results: [row], pagination }).hasMore;
  expect([hasMore({ current: 1, next: "https://www.google.com/search?start=10" }), hasMore({ current: 2 })]).toEqual([
    true,
    false,
  ]);
});
