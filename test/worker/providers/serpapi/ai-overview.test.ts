import { describe, expect, test } from "vitest";
import { openSerpapi } from "../../../../worker/providers/serpapi/serpapi.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import {
  elementsOf,
  firstOf,
  linksOf,
  pageWithRow,
  serpapiKey,
  succeededMetadata,
} from "../../../harness/fixtures/serpapi-page.ts";

describe("an AI overview", () => {
  test("has headings, lists, tables, comparisons, expandable parts and code, and headings do not run into sentences", () => {
    const text_blocks = [
      {
        type: "paragraph",
        snippet: "A pump moves water.",
        snippet_highlighted_words: ["moves"],
        reference_indexes: [0],
      },
      { type: "heading", snippet: "Kinds" },
      { type: "list", list: [{ title: "Deep:", snippet: "for wells", list: [{ snippet: "of 9 m" }] }, "Small"] },
      {
        type: "table",
        table: [
          ["Kind", "Price"],
          ["Deep", "$99"],
        ],
        formatted: [{ kind: "Deep", price: "$99" }],
      },
      { type: "comparison", product_labels: ["P1", "P2"], comparison: [{ feature: "Power", values: ["1 W", "2 W"] }] },
      {
        type: "expandable",
        title: "More",
        subtitle: "To read",
        text_blocks: [{ type: "paragraph", snippet: "Prime it." }],
      },
      { type: "code", code: "pump.start()" },
    ];
    expect(firstOf({ ai_overview: { text_blocks } })?.description).toBe(
      "A pump moves water. Kinds · Deep: for wells · of 9 m · Small · Kind: Price · Deep: $99 · P1 · P2 · Power: 1 W, 2 W · " +
        "More · To read · Prime it. pump.start()",
    );
  });

  test("has its references, products, stories, videos and cited words as links", () => {
    const link = (number: number) => `https://pumps.example/${number}`;
    const ai_overview = {
      text_blocks: [
        {
          snippet: "Pumps are wells.",
          snippet_links: [{ text: "wells", link: link(3) }],
          video: { link: link(4), source: "Pump TV", date: "Feb 9" },
        },
        { type: "top_stories", top_stories: [{ title: "Pump wins", link: link(5), source: "News", live: true }] },
      ],
      references: [{ title: "Pump", link: link(1), source: "Wiki", snippet: "Moves water.", index: 0 }],
      products: [{ title: "P 900", rating: "4.7", reviews: "10K", price: "$99", installments: "$9 × 11" }],
    };
    expect(linksOf({ ai_overview })).toEqual([
      { title: "Pump", url: link(1), description: "Wiki · Moves water." },
      { title: "P 900", url: "", description: "$99 · 4.7 (10K) · $9 × 11" },
      { title: "wells", url: link(3), description: "" },
      { title: "", url: link(4), description: "Pump TV · Feb 9" },
      { title: "Pump wins", url: link(5), description: "News · Live" },
    ]);
  });

  test("that Google could not generate is no element", () => {
    expect(elementsOf({ ai_overview: { error: "Try later." } })).toHaveLength(1);
  });
});

describe("an AI overview that the page only announces", () => {
  const open = (settings: Record<string, string>) =>
    openSerpapi(engineConfig({ SERPAPI_API_KEY: serpapiKey, ...settings }));

  test("has a key, which is not read where the text came with the page", () => {
    expect(pageWithRow({ ai_overview: { page_token: "t1", serpapi_link: "https://serpapi.example/" } })).toMatchObject({
      elements: [{ type: "ai_overview", description: "" }, { type: "organic" }],
      overviewToken: "t1",
    });
    const ai_overview = { page_token: "t1", text_blocks: [{ type: "paragraph", snippet: "Water." }] };
    expect(pageWithRow({ ai_overview })).not.toHaveProperty("overviewToken");
  });

  test.each<[string, object, object]>([
    [
      "its text",
      { ai_overview: { text_blocks: [{ type: "paragraph", snippet: "Water." }] } },
      { elements: [{ type: "ai_overview", description: "Water." }], costMicroUsd: 25_000 },
    ],
    ["an expired key", { search_metadata: { status: "Error" }, error: "Expired." }, { failure: "unavailable" }],
    ["no text", { ai_overview: { error: "None." } }, { failure: "unreadable", costMicroUsd: 25_000 }],
  ])("is read from the answer with %s", (_, answer, expected) => {
    const body = JSON.stringify({ search_metadata: succeededMetadata, ...answer });
    expect(open({ SERPAPI_AI_OVERVIEW: "on" }).overview?.read({ status: 200, headers: {}, body })).toMatchObject(
      expected,
    );
  });
});
