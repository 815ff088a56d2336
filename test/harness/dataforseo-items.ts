import type { Element } from "../../worker/engine/provider.ts";
import { openDataForSeo } from "../../worker/engine/providers/dataforseo.ts";
import { engineConfig } from "./queries.ts";

const dataforseo = openDataForSeo(engineConfig({ DATAFORSEO_LOGIN: "me", DATAFORSEO_PASSWORD: "pass" }));

/** What the adapter makes of these items of a page. */
export function elementsOf(...items: object[]): Element[] {
  return readItems(JSON.stringify(items));
}

/** The same for a list of items as JSON. @throws where the page cannot be read. */
export function readItems(items: string): Element[] {
  const body = `{"status_code":20000,"tasks":[{"status_code":20000,"result":[{"items":${items}}]}]}`;
  const page = dataforseo.read({ status: 200, headers: {}, body });
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page.elements;
}

/** An organic result with every part that any item has; no page has such a one. */
export function everyPart() {
  const link = { type: "link_element", title: "Site", url: "https://a.example/1", description: "x" };
  return {
    type: "organic",
    title: "Pumps",
    url: "https://a.example/",
    breadcrumb: "a",
    description: "a",
    text: ["a"],
    subtitle: "a",
    featured_title: "a",
    source: "a",
    pre_snippet: "a",
    extended_snippet: "a · b",
    description_rows: ["a"],
    rating: { value: 4, votes_count: 1 },
    price: { displayed_price: "$1" },
    table: { table_content: [["a", "b"]] },
    faq: { items: [link] },
    links: [link],
    link,
    references: [link],
    related_result: [link],
    expanded_element: [link],
    items: [{ ...link, expanded_element: [link], components: [link], links: [link] }],
    timestamp: "2026-01-02 00:00:00 +00:00",
    rank_absolute: 1,
  };
}

/** A knowledge panel with a part of each kind. */
export const panel = {
  type: "knowledge_graph",
  title: "Pump",
  subtitle: "Machine",
  description: null,
  url: "https://pump.example/",
  items: [
    {
      type: "knowledge_graph_row_item",
      title: "Born",
      text: "long ago",
      links: [{ type: "link_element", title: "long ago", url: "https://when.example/" }],
    },
    { type: "knowledge_graph_row_item", title: "Phone", text: "Phone: 555", links: null },
    {
      type: "knowledge_graph_description_item",
      text: "A pump moves water.",
      links: [{ type: "link_element", title: "Wiki", url: "https://wiki.example/" }],
    },
    {
      type: "knowledge_graph_list_item",
      title: "Songs",
      items: [{ title: "Waterfall", subtitle: "1999", url: "https://song.example/" }],
    },
  ],
};

const rating = { rating_type: "Max5", value: 4.8, votes_count: 803, rating_max: 5 };
/** One item of each kind that holds others in its own way. */
export const grouped = [
  {
    type: "people_also_ask",
    items: [
      {
        type: "people_also_ask_element",
        title: "Which pump?",
        expanded_element: [{ title: "FAQ", url: "https://faq.example/1", description: "A small one." }],
      },
    ],
  },
  {
    type: "people_also_ask",
    items: [
      {
        title: "Why?",
        expanded_element: [
          { items: [{ text: "So." }, { text: "And so." }], references: [{ url: "https://ai.example/" }] },
        ],
      },
    ],
  },
  {
    type: "top_stories",
    items: [{ title: "Pump wins", url: "https://news.example/1", source: "News", date: "2 hours ago" }],
  },
  {
    type: "video",
    items: [
      { title: "Pumping", url: "https://video.example/1", source: "Tube", timestamp: "2026-09-11 14:42:55 +00:00" },
    ],
  },
  {
    type: "images",
    items: [{ type: "images_element", alt: "A pump", url: null, image_url: "https://img.example/1.png" }],
  },
  {
    type: "shopping",
    items: [
      { title: "Pump 900", url: "https://shop.example/9", source: "Shop", price: { displayed_price: "$99" }, rating },
    ],
  },
  { type: "related_searches", items: ["pump repair", "pump noise", null] },
  {
    type: "mention_carousel",
    title: "Top pumps",
    items: [
      {
        title: "Pump 1",
        rating: { rating_type: "Percents", value: 92, votes_count: 46 },
        mentioned_in: [
          { title: "Review 1", url: "https://review.example/1", snippet: "Best." },
          { title: "Review 2", url: "https://review.example/2" },
        ],
      },
    ],
  },
  { type: "google_flights", items: [{ description: "From $10", url: "https://fly.example/" }] },
];
