import type { Failure, Page } from "../../worker/engine/provider.ts";
import { openSerpapi } from "../../worker/engine/providers/serpapi.ts";
import { engineConfig } from "./queries.ts";

export const serpapiKey = "0123456789abcdef-of-a-test";
export const serpapi = openSerpapi(engineConfig({ SERPAPI_API_KEY: serpapiKey }));
/** What they say of a search that went well. */
export const success = { id: "1", status: "Success" };

/** What the adapter makes of an answer. */
export function readJson(status: number, json: unknown): Page | Failure {
  return serpapi.read({ status, headers: {}, body: JSON.stringify(json) });
}

/** The page of a search that went well. @throws where it cannot be read. */
export function pageOf(parts: object): Page {
  const page = readJson(200, { search_metadata: success, ...parts });
  if ("failure" in page) throw new Error(`This page could not be read: ${page.failure}.`);
  return page;
}

const product = {
  title: "Pump 900",
  link: "https://shop.example/900",
  price: "$99.00",
  source: "Shop",
  rating: 4,
  reviews: 7,
};
const video = { title: "Pumping", link: "https://video.example/1", platform: "Tube", channel: "Pump TV" };
/** The parts of an answer of SerpApi with an element of every kind, in the shapes of their documentation and recorded answers. */
export const everything = {
  search_parameters: { engine: "google", q: "garden pump" },
  search_information: { query_displayed: "garden pump", menu_items: [{ title: "Images" }] },
  ads: [
    {
      block_position: "top",
      title: "Pumps now",
      link: "https://ads.example/",
      displayed_link: "https://ads.example/",
      description: "Cheap.",
      rating: 4.1,
      reviews: 5,
      price: "$5",
      extensions: ["Free returns"],
      sitelinks: [{ title: "Sale", link: "https://ads.example/sale", snippets: ["All of it.", "Now."] }],
    },
    { block_position: "bottom", title: "Pumps below", link: "https://below.example/" },
  ],
  ai_overview: {
    text_blocks: [
      { type: "paragraph", snippet: "A pump moves water.", reference_indexes: [0] },
      { type: "list", title: "Kinds", list: [{ title: "Deep:", snippet: "for wells." }] },
    ],
    references: [{ title: "Pumps", link: "https://wiki.example/pump", source: "Wiki", index: 0 }],
  },
  answer_box: {
    type: "organic_result",
    title: "Pump",
    link: "https://wiki.example/pump",
    snippet: "Moves water.",
    displayed_link: "https://wiki.example › pump",
    answer: "water",
    date: "2020",
  },
  knowledge_graph: {
    title: "Pump",
    type: "Machine",
    description: "Moves water.",
    website: "https://pumps.example/",
    kgmid: "/m/1",
    source: { name: "Wiki", link: "https://wiki.example/pump" },
    rating: 4.2,
    review_count: 10,
    entity_type: "kp3",
    patron_saint: "Drogo",
    parts: 12,
    header_images: [{ image: "https://i.example/", source: "https://s.example/" }],
    people_also_search_for: [{ name: "Well", link: "https://google.example/?q=well" }],
  },
  shopping_results: [product],
  top_stories: [{ title: "Pump wins", link: "https://news.example/1", source: "News", date: "1 hour ago" }],
  local_map: { link: "https://maps.example/", image: "https://maps.example/1.png" },
  local_results: {
    places: [
      {
        title: "Pump Shop",
        rating: 4.5,
        reviews: 1200,
        price: "$",
        type: "Hardware",
        address: "1 Main St",
        links: { website: "https://shop.example/", directions: "https://maps.example/to" },
      },
    ],
    more_locations_link: "https://maps.example/",
  },
  related_questions: [
    { question: "Which pump?", snippet: "A small one.", title: "FAQ", link: "https://faq.example/1" },
    {
      question: "Why a pump?",
      type: "ai_overview",
      text_blocks: [
        { type: "paragraph", snippet: "It moves water." },
        { type: "list", title: "Uses", list: [{ title: "Wells:", snippet: "deep ones." }] },
        { type: "table", table: [["a", "b"]] },
      ],
      references: [{ title: "FAQ", link: "https://faq.example/2" }],
    },
  ],
  inline_images: [
    { title: "A pump", link: "https://google.example/", source: "https://img.example/page", source_name: "Img" },
  ],
  inline_videos: [{ ...video, date: "2 days ago", duration: "3:14" }],
  short_videos: [video],
  immersive_products: [
    { category: "Popular products", title: "Pump 1" },
    { category: "In stores nearby", title: "Pump 2" },
    { category: "Popular products", title: "Pump 3" },
  ],
  discussions_and_forums: [
    { title: "Loud pump?", link: "https://forum.example/1", source: "Forum", date: "3 years ago" },
  ],
  events_results: [{ title: "Pump fair", link: "https://fair.example/" }],
  refinements: { title: "Narrow it down", snippet: "Choose.", chips: ["Solar"] },
  refine_search_filters: [
    { type: "Colour", options: [{ title: "Red", link: "https://r.example/" }, { title: "Blue" }] },
  ],
  related_searches: [{ query: "pump repair", link: "https://google.example/?q=pump+repair" }, "pump noise"],
  serpapi_pagination: { current: 1, next: "https://serpapi.example/?start=10" },
};
