import { expect, test } from "vitest";
import { elementsOf, partsWithEveryElement } from "../../../harness/fixtures/serpapi-page.ts";

test.each([
  ["top_stories", [{ title: "Pump wins", url: "https://news.example/1", description: "News · 1 hour ago" }]],
  [
    "local_pack",
    [
      {
        title: "Pump Shop",
        url: "https://shop.example/",
        description:
          "4.5 (1,200) · $ · Hardware · 1 Main St · Closes 8 PM · (555) 010-0100 · Sells pumps. · In-store pickup",
      },
    ],
  ],
  ["images", [{ title: "A pump", url: "https://img.example/page", description: "Img" }]],
  [
    "video",
    [
      {
        title: "Pumping",
        url: "https://video.example/1",
        description: "Tube · Pump TV · 2 days ago · 3:14 · 00:13 Priming",
      },
    ],
  ],
  ["discussions", [{ title: "Loud pump?", url: "https://forum.example/1", description: "Forum · 3 years ago" }]],
  [
    "shopping",
    [
      {
        title: "Pump 900",
        url: "https://shop.example/900",
        description: "$99.00 · $120.00 · Shop · 4 (7) · refurbished · Free delivery · SALE · 17% OFF",
      },
    ],
  ],
  [
    "people_also_ask",
    [
      {
        title: "Which pump?",
        url: "https://faq.example/1",
        description: "A small one. · FAQ · faq.example › 1 · 2020",
      },
      {
        title: "Why a pump?",
        url: "https://faq.example/2",
        description: "It moves water. Uses · Wells: deep ones. a: b · FAQ",
      },
      { title: "How?", url: "", description: "So: Prime it. Pump: Price" },
    ],
  ],
  [
    "related_searches",
    [
      { title: "pump repair", url: "https://google.example/?q=pump+repair", description: "" },
      { title: "Hand pump", url: "https://google.example/?q=hand", description: "" },
      { title: "pump noise", url: "", description: "" },
    ],
  ],
])("the links of %s have the answer or the source as description", (type, links) => {
  expect(elementsOf(partsWithEveryElement).find((found) => found.type === type)?.siteLinks).toEqual(links);
});

test("an ad has its breadcrumb, description, rating, attributes and site links, and keeps its place on the page", () => {
  const [ad] = elementsOf(partsWithEveryElement);
  expect(ad).toEqual({
    type: "paid",
    title: "Pumps now",
    url: "https://ads.example/",
    domain: "ads.example",
    breadcrumb: "https://ads.example/",
    description: "Cheap.",
    richSnippet: { top: ["4.1 (5)", "$5"], bottom: ["Free returns"] },
    siteLinks: [{ title: "Sale", url: "https://ads.example/sale", description: "All of it. Now." }],
  });
  expect(elementsOf(partsWithEveryElement).at(-2)).toMatchObject({ type: "paid", title: "Pumps below" });
});

test("products of several blocks become one element per block", () => {
  const blocks = elementsOf(partsWithEveryElement).filter(({ type, title }) => type === "shopping" && title !== "");
  expect(blocks.map(({ title, siteLinks }) => [title, siteLinks.length])).toEqual([
    ["Popular products", 2],
    ["In stores nearby", 1],
  ]);
});

test("an unknown element becomes `other`, with the links in it and in its parts", () => {
  const others = elementsOf(partsWithEveryElement).filter(({ type }) => type === "other");
  expect(
    others.map(({ title, description, siteLinks }) => [
      title,
      description,
      siteLinks.map((link) => [link.title, link.description]),
    ]),
  ).toEqual([
    ["events_results", "", [["Pump fair", "Sat, 9 May · Main Square · 1 Main St"]]],
    ["Narrow it down", "Choose.", [["Solar", ""]]],
    [
      "refine_search_filters",
      "",
      [
        ["Red", "Colour"],
        ["Blue", "Colour"],
      ],
    ],
  ]);
});

test.each([
  ["a group in an unknown form", { related_questions: { a: { title: "Which?" } } }, "related_questions"],
  ["ads in an unknown form", { ads: { first: "Pumps" } }, "ads"],
  ["a panel that is a text", { knowledge_graph: "Pump" }, "knowledge_graph"],
  ["a lone text", { spelling_fix: "pump" }, "spelling_fix"],
])("%s becomes `other`, and the rest of the page is kept", (_, parts, title) => {
  const found = elementsOf(parts);
  expect(found).toHaveLength(2);
  expect(found.find(({ type }) => type === "organic")).toMatchObject({ title: "Pumps" });
  expect(found.find(({ type }) => type === "other")).toMatchObject({ title });
});

test("fields about the request and empty fields are not elements", () => {
  const parts = {
    search_parameters: { q: "pump" },
    top_stories_link: "https://a.example/",
    ads: [],
    top_stories: null,
  };
  expect(elementsOf({ ...parts, related_questions: [], local_map: {}, was_fixed: false })).toHaveLength(1);
});
