import { describe, expect, test } from "vitest";
import { openSerper } from "../../../../worker/providers/serper/serper.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { pageIn, readWith } from "../../../harness/fixtures/read-page.ts";
import { pageWithEveryElement } from "../../../harness/fixtures/serper-page.ts";

const serper = openSerper(
  engineConfig({ SERPER_API_KEY: "key-of-a-test", SERPER_BASE_URL: "https://serper.example/" }),
);

describe("a page", () => {
  test("an address that comes twice is one site link", () => {
    const sitelinks = ["Deep well", "Again"].map((title) => ({ title, link: "https://a.example/deep" }));
    const [found] = pageOf({ organic: [{ title: "a", link: "https://a.example/", sitelinks }] }).elements;
    expect(found?.siteLinks).toEqual([{ title: "Deep well", url: "https://a.example/deep", description: "" }]);
  });

  test("the links of elements have the answer or the source as description", () => {
    const { elements } = pageOf(pageWithEveryElement);
    const linksOf = (type: string) => elements.find((found) => found.type === type)?.siteLinks;
    expect(linksOf("people_also_ask")).toEqual([
      { title: "Which pump?", url: "https://faq.example/1", description: "A small one. · FAQ · May 2, 2026" },
      { title: "Why a pump?", url: "https://faq.example/1", description: "It moves. · FAQ" },
    ]);
    expect(linksOf("local_pack")).toEqual([
      {
        title: "Pump Shop",
        url: "https://shop.example/",
        description: "4.5 (12) · Hardware · 1 Main Street · Monday: 9 AM to 5 PM, Sunday: closed · 555 0100",
      },
      { title: "Pump Shop West", url: "https://shop.example/", description: "(3) · $$" },
    ]);
    expect(linksOf("shopping")?.map(({ description }) => description)).toEqual([
      "$99.00 · Shop · Free by Friday · Power: 900 W · old price: $120.00",
    ]);
    expect(linksOf("video")?.map(({ description }) => description)).toEqual(["Pump TV · 3:14 · How to."]);
    expect(elements[0]).toMatchObject({ title: "didYouMean", siteLinks: [{ title: "garden pumps" }] });
    expect(linksOf("related_searches")?.map(({ title }) => title)).toEqual(["pump repair", "pump noise"]);
  });

  test("an answer without a source is an answer box", () => {
    const { elements } = pageOf({ organic: [], answerBox: { title: "7 × 6", answer: "42" } });
    expect(elements).toMatchObject([{ type: "answer_box", title: "7 × 6", description: "42", url: "" }]);
  });

  test("an answer whose link is Google's own is an answer box, and one quoted from a page is a featured snippet", () => {
    const typeOf = (link: string) => pageOf({ organic: [], answerBox: { answer: "42", link } }).elements[0]?.type;
    expect(typeOf("https://www.google.com/search?q=6x7")).toBe("answer_box");
    expect(typeOf("https://www.google.de/finance/quote/X")).toBe("answer_box");
    expect(typeOf("https://www.google.com/url?q=https://wiki.example/")).toBe("featured_snippet");
    expect(typeOf("https://support.google.com/pumps")).toBe("featured_snippet");
  });

  test("an answer that Serper tells only by its highlighted words has these as description", () => {
    const answerBox = {
      title: "Pump",
      snippetHighlighted: ["moves", "water"],
      link: "https://wiki.example/",
      unit: "l",
    };
    expect(pageOf({ organic: [], answerBox }).elements).toMatchObject([
      { type: "featured_snippet", description: "moves water", richSnippet: { bottom: ["unit: l"] } },
    ]);
  });

  test("a rating keeps its scale if that does not end at five, and votes without a rating are kept", () => {
    const topOf = (fields: object) =>
      pageOf({ organic: [{ title: "a", link: "https://a.example/", ...fields }] }).elements[0]?.richSnippet.top;
    expect(topOf({ rating: 8.5, ratingMax: 10, ratingCount: 1234 })).toEqual(["8.5/10 (1,234)"]);
    expect(topOf({ rating: "4,5", ratingMax: 5, ratingCount: "1.234" })).toEqual(["4,5 (1.234)"]);
    expect(topOf({ ratingCount: 12 })).toEqual(["(12)"]);
  });

  test("a field that is not known yet is kept with its name; pictures, ids and coordinates are left out", () => {
    const row = {
      title: "a",
      link: "https://a.example/",
      priceRange: "$10 to $20",
      inStock: "3 left",
      tags: ["new", "quiet"],
      attributes: { Noise: ["40 dB", 40] },
      imageUrl: "data:image/png;base64,AAAA",
      posterLink: "https://a.example/poster",
      cid: "1",
      latitude: 1,
      nested: { deeper: { text: "x" } },
    };
    expect(pageOf({ organic: [row] }).elements[0]?.richSnippet).toEqual({
      top: ["$10 to $20"],
      bottom: ["Noise: 40 dB, 40", "in stock: 3 left", "tags: new, quiet"],
    });
  });

  test("the answer names what Google searched instead of a misspelled keyword", () => {
    const organic = [{ title: "a", link: "https://a.example/" }];
    const page = pageOf({ organic, searchInformation: { showingResultsFor: "garden <b>pump</b>" } });
    expect(page.searchedKeyword).toBe("garden pump");
    expect(pageOf({ organic, searchInformation: { didYouMean: "pumps" } })).not.toHaveProperty("searchedKeyword");
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

  test("an empty page is a success and the last page", () => {
    expect(pageOf({ organic: [] })).toEqual({
      elements: [],
      totalResultsCount: 0,
      hasMore: false,
      costMicroUsd: 1_000,
    });
  });
});

describe("a page that can be read in part", () => {
  const sound = { title: "a", link: "https://a.example/" };

  test("a row of another element that cannot be read is counted, too", () => {
    const page = pageOf({ organic: [sound, 7], peopleAlsoAsk: [{ title: [] }] });
    expect(page).toMatchObject({ elements: [{ type: "organic", title: "a" }], unreadableRows: 2, hasMore: true });
  });

  test("a result without title, link or snippet has what it has", () => {
    const { elements } = pageOf({
      organic: [{ title: "a" }, { link: "https://b.example/" }, { title: ["c"], snippet: "C." }],
    });
    expect(elements.map(({ title, url, description }) => [title, url, description])).toEqual([
      ["a", "", ""],
      ["", "https://b.example/", ""],
      ["", "", "C."],
    ]);
  });

  test.each([undefined, null, { title: "a" }])(
    "elements are returned although the organic results are %j",
    (organic) => {
      const page = pageOf({ organic, answerBox: { answer: "42" }, credits: 1 });
      expect(page).toMatchObject({ elements: [{ type: "answer_box" }], hasMore: false, costMicroUsd: 1_000 });
    },
  );

  test("elements are returned if no organic result can be read", () => {
    const page = pageOf({ organic: [7, 8], relatedSearches: [{ query: "pump repair" }] });
    expect(page).toMatchObject({ elements: [{ type: "related_searches" }], unreadableRows: 2, hasMore: true });
  });
});

describe("a failure never looks like an empty page", () => {
  test.each([
    ["no organic part", { searchParameters: {} }],
    ["elements without any content", { organic: [], peopleAlsoAsk: [{ title: [] }] }],
    ["an empty list with a message", { organic: [], message: "Unauthorized." }],
    ["only fields that are not known", { errors: [{ title: "Try again" }], error: { title: "Error" } }],
  ])("%s is unreadable", (_, body) => {
    expect(readJson(200, body)).toEqual({ failure: "unreadable" });
  });

  test("an unreadable answer with credits has a cost", () => {
    expect(readJson(200, { credits: 2 })).toEqual({ failure: "unreadable", costMicroUsd: 2_000 });
    for (const credits of [0, -1, 0.5, "2", null])
      expect(readJson(200, { organic: null, credits })).toEqual({ failure: "unreadable" });
  });
});

const readJson = (status: number, json: unknown) => readWith(serper, status, json);
const pageOf = (json: unknown) => pageIn(readJson(200, json));
