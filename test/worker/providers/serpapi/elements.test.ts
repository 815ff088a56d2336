import { describe, expect, test } from "vitest";
import {
  elementsOf,
  firstOf,
  linksOf,
  partsWithEveryElement,
  product,
  row,
} from "../../../harness/fixtures/serpapi-page.ts";
import { linkLines } from "../../../harness/fixtures/read-page.ts";

/** What becomes of the parts of a page of SerpApi. A link is written as `title | address | description`. */

const all = elementsOf(partsWithEveryElement);

test.each([
  ["top_stories", ["Pump wins | news.example/1 | News · 1 hour ago"]],
  [
    "local_pack",
    [
      "Pump Shop | shop.example/ | 4.5 (1,200) · $ · Hardware · 1 Main St · Closes 8 PM · (555) 010-0100 · Sells pumps. · In-store pickup",
    ],
  ],
  ["images", ["A pump | img.example/page | Img"]],
  ["video", ["Pumping | video.example/1 | Tube · Pump TV · 2 days ago · 3:14 · 00:13 Priming"]],
  ["discussions", ["Loud pump? | forum.example/1 | Forum · 3 years ago"]],
  [
    "shopping",
    ["Pump 900 | shop.example/900 | $99.00 · $120.00 · Shop · 4 (7) · refurbished · Free delivery · SALE · 17% OFF"],
  ],
  [
    "people_also_ask",
    [
      "Which pump? | faq.example/1 | A small one. · FAQ · faq.example › 1 · 2020",
      "Why a pump? | faq.example/2 | It moves water. Uses · Wells: deep ones. a: b · FAQ",
      "How? |  | So: Prime it. Pump: Price",
    ],
  ],
  [
    "related_searches",
    ["pump repair | google.example/?q=pump+repair | ", "Hand pump | google.example/?q=hand | ", "pump noise |  | "],
  ],
])("the links of %s have the answer or the source as description", (type, links) => {
  expect(linkLines(all.find((found) => found.type === type))).toEqual(links);
});

test("an ad has its breadcrumb, description, rating, attributes and site links, no direction marks, and its place on the page", () => {
  expect(all[0]).toEqual({
    type: "paid",
    title: "Pumps now",
    url: "https://ads.example/",
    domain: "ads.example",
    breadcrumb: "https://ads.example/",
    description: "Cheap.",
    richSnippet: { top: ["4.1 (5)", "$5"], bottom: ["Free returns"] },
    siteLinks: [{ title: "Sale", url: "https://ads.example/sale", description: "All of it. Now." }],
  });
  expect(all.at(-2)).toMatchObject({ type: "paid", title: "Pumps below" });
  expect(firstOf({ ads: [{ ...row, title: "\u200ePumps\u200e" }] })?.title).toBe("Pumps");
});

describe("products", () => {
  test("of several blocks become one element per block", () => {
    const blocks = all.filter(({ type, title }) => type === "shopping" && title !== "");
    expect(blocks.map(({ title, siteLinks }) => `${title}: ${siteLinks.length}`)).toEqual([
      "Popular products: 2",
      "In stores nearby: 1",
    ]);
  });

  test("have the place that SerpApi tells: above or below the organic results", () => {
    const inline_shopping_results = ["top", "right", "bottom"].map((block_position) => {
      return { ...product, link: `https://shop.example/${block_position}`, block_position };
    });
    const elements = elementsOf({ inline_shopping_results });
    expect(elements.map(({ type, siteLinks }) => `${type} ${siteLinks.length}`)).toEqual([
      "shopping 2",
      "organic 0",
      "shopping 1",
    ]);
  });
});

describe("an element of an unknown kind", () => {
  test("becomes `other`, with the links in it and in its parts", () => {
    const others = all.filter(({ type }) => type === "other");
    expect(others.map((other) => [other.title, other.description, ...linkLines(other)])).toEqual([
      ["events_results", "", "Pump fair | fair.example/ | Sat, 9 May · Main Square · 1 Main St"],
      ["Narrow it down", "Choose.", "Solar |  | "],
      ["refine_search_filters", "", "Red | r.example/ | Colour", "Blue |  | Colour"],
    ]);
  });

  test("has the facts in its parts", () => {
    const teams = [
      { name: "Pump United", score: "2", kgmid: "/m/1" },
      { name: "Well FC", score: "1" },
    ];
    const league = { name: "Pump League", season: 2026 };
    const sports_results = {
      title: "Pump United",
      rankings: "1st",
      thumbnail: "https://i.example/",
      games: [{ status: "Final", teams }],
      league,
    };
    expect(firstOf({ sports_results })).toMatchObject({
      title: "Pump United",
      richSnippet: {
        bottom: ["Rankings: 1st", "Final · Pump United 2 · Well FC 1", "League: Name Pump League, Season 2026"],
      },
    });
  });

  test.each([
    ["a group in an unknown form", { related_questions: { a: { title: "Which?" } } }, "related_questions"],
    ["ads in an unknown form", { ads: { first: "Pumps" } }, "ads"],
    ["a panel that is a text", { knowledge_graph: "Pump" }, "knowledge_graph"],
    ["a lone text", { spelling_fix: "pump" }, "spelling_fix"],
  ])("is also %s, and the rest of the page is kept", (_, parts, title) => {
    const titles = elementsOf(parts).map((found) => `${found.type} ${found.title}`);
    expect(titles.toSorted()).toEqual(["organic Pumps", `other ${title}`]);
  });

  test("is no field about the request, no empty field and none with nothing in it", () => {
    const parts = {
      search_parameters: { q: "pump" },
      top_stories_link: "https://a.example/",
      ads: [],
      top_stories: null,
      related_questions: [],
      local_map: {},
      was_fixed: false,
      refinements: { chips: [] },
      filters: [{ options: [{ title: "", link: "https://g.example/" }] }],
    };
    expect(elementsOf(parts)).toHaveLength(1);
  });
});

describe("an answer", () => {
  const answerOf = (answer_box: unknown) => elementsOf({ answer_box })[0];

  test("with a source is a featured snippet", () => {
    expect(all[2]).toMatchObject({
      title: "Pump",
      url: "https://wiki.example/pump",
      breadcrumb: "https://wiki.example › pump",
      description: "Moves water.",
      richSnippet: { top: ["water", "2020"], bottom: [] },
    });
    const steps = { title: "Steps", list: ["Dig.", "Pump."], link: "https://a.example/" };
    expect(answerOf(steps)?.description).toBe("Dig. Pump.");
  });

  const googles = "https://www.google.com/search?q=pump+weight";
  const forecast = [{ day: "Monday", weather: "Sunny", temperature: { high: "101", low: "79" } }];
  const weather = { type: "weather_result", temperature: "96", thumbnail: "https://t.example/", forecast };
  const bottom = ["Temperature: 96", "Monday · Sunny · Temperature: High 101, Low 79"];
  test.each<[string, object, object]>([
    ["of a calculator", { type: "calculator_result", result: "42" }, { description: "42" }],
    ["in short", { type: "organic_result", title: "Use", answer: "Water" }, { title: "Use", description: "Water" }],
    ["of a dictionary", { definitions: ["To move water.", "A shoe."] }, { description: "To move water. A shoe." }],
    ["of facts", weather, { title: "weather result", richSnippet: { top: [], bottom } }],
    ["at Google's own address", { answer: "9 kg", link: googles }, { url: googles, description: "9 kg" }],
  ])("%s, without a source, is an answer box", (_, box, fields) => {
    expect(answerOf(box)).toMatchObject({ type: "answer_box", url: "", ...fields });
  });

  test("of several, each is an element", () => {
    const answer_box_list = ["Pump", "Hose"].map((title) => ({ title, answer: "2 kg" }));
    expect(elementsOf({ answer_box_list }).map(({ type, title }) => `${type} ${title}`)).toEqual([
      "answer_box Pump",
      "answer_box Hose",
      "organic Pumps",
    ]);
  });
});

test("a knowledge panel has no URL of its own; its facts are below, and its site, source and lists are links", () => {
  expect(all[3]).toMatchObject({
    type: "knowledge_graph",
    title: "Pump",
    url: "",
    description: "Moves water.",
    richSnippet: {
      top: ["Machine", "4.2 (10)"],
      bottom: ["Patron saint: Drogo", "Hours: Monday 9–5", "Parts: 12", "Power: 900 W, 1 kW"],
    },
  });
  expect(linkLines(all[3])).toEqual([
    "Pump | pumps.example/ | ",
    "Wiki | wiki.example/pump | ",
    "saints.example | saints.example/drogo | ",
    "Well | google.example/?q=well | ",
  ]);
});

describe("a business has", () => {
  test("its details, and its line breaks join no words and split no sentence", () => {
    const place = {
      title: "Pump Shop",
      place_id: "123",
      lsig: "AB",
      rating: 4.5,
      reviews: 1200,
      reviews_original: "(1.2K)",
      type: "Hardware",
      address: "1 Main St\nSpringfield",
      hours: "Open ⋅ Closes 8 PM",
      phone: "555",
      description: "In-store\npickup",
      service_options: { in_store_pickup: true, delivery: false },
      extensions: ["Has pumps"],
      gps_coordinates: { latitude: 1.5, longitude: 2.5 },
      links: { website: "https://shop.example/", directions: "https://maps.example/to" },
    };
    expect(linksOf({ local_results: { places: [place] } })).toEqual([
      "Pump Shop | shop.example/ | 4.5 (1,200) · Hardware · 1 Main St · Springfield · Open ⋅ Closes 8 PM · 555 · In-store pickup · " +
        "Service options: In store pickup · Has pumps",
    ]);
  });

  test("the number of its reviews without a rating", () => {
    expect(linksOf({ local_results: [{ title: "Pump Shop", reviews: 13 }] })).toEqual(["Pump Shop |  | (13)"]);
  });

  test("in a list of ads, the heading of the list", () => {
    const local_ads = { title: "Sponsored", see_more_text: "More plumbers", ads: [{ title: "Ann", ad: true }] };
    const bottom = ["See more text: More plumbers"];
    expect(firstOf({ local_ads })).toMatchObject({ type: "local_pack", title: "Sponsored", richSnippet: { bottom } });
    expect(linksOf({ local_ads })).toEqual(["Ann |  | Ad"]);
  });
});

test("a carousel of videos has the videos in it, and its heading", () => {
  const videos = [{ title: "Pumping", link: "https://video.example/1", channel: "Pump TV" }];
  const parts = { inline_video_carousels: [{ title: "How to prime", videos }] };
  expect(firstOf(parts)).toMatchObject({ type: "video", richSnippet: { bottom: ["Title: How to prime"] } });
  expect(linksOf(parts)).toEqual(["Pumping | video.example/1 | Pump TV"]);
});

describe("a question", () => {
  const table = [
    ["Pump", "Price"],
    ["P 900", "$99"],
  ];
  const text_blocks = [{ type: "paragraph", snippet: "It is.", reference_indexes: [0, 1] }];
  const references = ["a", "b"].map((name, index) => {
    return { title: name, link: `https://${name}.example/`, source: "Site", snippet: "Sep 24, 2018", index };
  });
  const generated = { question: "Is it?", type: "ai_overview", text_blocks, references };

  test.each<[string, object, string]>([
    ["its list", { question: "Which?", snippet: "These:", list: ["One.", "Two."] }, "Which? |  | These: One. Two."],
    ["its table", { question: "How?", table, source: "FAQ" }, "How? |  | Pump: Price · P 900: $99 · FAQ"],
    [
      "no answer that takes a second search",
      { question: "Which?", type: "ai_overview", page_token: "t" },
      "Which? |  | ",
    ],
    ["the first page that its answer cites", generated, "Is it? | a.example/ | It is. · a · Site · Sep 24, 2018"],
    ["its own page", { ...generated, link: "https://own.example/" }, "Is it? | own.example/ | It is."],
  ])("has %s", (_, question, line) => {
    expect(linksOf({ related_questions: [question] })).toEqual([line]);
  });
});

test("a related search has the things that Google lists under it, each with its address", () => {
  const related_searches = [
    { query: "types", link: "https://g.example/?q=types", items: [{ name: "Jet", link: "https://g.example/j" }] },
    { block_position: 1, items: [{ name: "Hand", image: "https://i.example/", link: "https://g.example/h" }] },
  ];
  expect(linksOf({ related_searches })).toEqual([
    "types | g.example/?q=types | ",
    "Jet | g.example/j | types",
    "Hand | g.example/h | ",
  ]);
});

describe("an organic result has", () => {
  test("tables, stories, a carousel, questions, answers and what SerpApi adds later", () => {
    const result = {
      ...row,
      rich_snippet_table: { extensions: ["Power: 900 W"], table: [["Weight", "9 kg"]] },
      latest_news: [{ title: "Pump wins", link: "https://news.example/1", source: "News", date: "1 hour ago" }],
      carousel: [{ title: "P 900", link: "https://pumps.example/900", rating: "4.5", reviews: "12" }],
      related_questions: [{ question: "Loud?", snippet: "No." }],
      missing: ["garden"],
      about_this_result: { source: { description: "An old site." } },
    };
    const [found] = elementsOf({ organic_results: [result] });
    expect(found?.richSnippet.bottom).toEqual(["Power: 900 W", "Weight: 9 kg", "Loud? · No.", "Missing: garden"]);
    expect(linkLines(found)).toEqual([
      "Pump wins | news.example/1 | News · 1 hour ago",
      "P 900 | pumps.example/900 | 4.5 (12)",
    ]);
  });

  test("as a thread the number of its answers, as a profile its author, and the word that it lacks", () => {
    const list = [{ title: "What is it?", link: "https://forum.example/2", answer_count: 147, date: "Sep 25, 2024" }];
    const [thread, page] = elementsOf({
      organic_results: [
        { ...row, source: "Reddit · r/pumps", sitelinks: { list } },
        { ...row, source: "Pumps", missing: ["tea"], must_include: { word: "tea", link: "https://google.example/" } },
      ],
    });
    expect(thread?.richSnippet.top).toEqual(["Reddit · r/pumps"]);
    expect(linkLines(thread)).toEqual(["What is it? | forum.example/2 | Answer count: 147 · Sep 25, 2024"]);
    expect(page).toMatchObject({
      richSnippet: { top: [], bottom: ["Must include: tea", "Missing: tea"] },
      siteLinks: [],
    });
  });
});

describe("an AI overview", () => {
  test("has headings, lists, tables, comparisons, expandable parts and code, and headings do not run into sentences", () => {
    const table = [
      ["Kind", "Price"],
      ["Deep", "$99"],
    ];
    const text_blocks = [
      {
        type: "paragraph",
        snippet: "A pump moves water.",
        snippet_highlighted_words: ["moves"],
        reference_indexes: [0],
      },
      { type: "heading", snippet: "Kinds" },
      { type: "list", list: [{ title: "Deep:", snippet: "for wells", list: [{ snippet: "of 9 m" }] }, "Small"] },
      { type: "table", table, formatted: [{ kind: "Deep", price: "$99" }] },
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
    const at = (number: number) => `https://pumps.example/${number}`;
    const video = { link: at(4), source: "Pump TV", date: "Feb 9" };
    const ai_overview = {
      text_blocks: [
        { snippet: "Pumps are wells.", snippet_links: [{ text: "wells", link: at(3) }], video },
        { type: "top_stories", top_stories: [{ title: "Pump wins", link: at(5), source: "News", live: true }] },
      ],
      references: [{ title: "Pump", link: at(1), source: "Wiki", snippet: "Moves water.", index: 0 }],
      products: [{ title: "P 900", rating: "4.7", reviews: "10K", price: "$99", installments: "$9 × 11" }],
    };
    expect(linksOf({ ai_overview })).toEqual([
      "Pump | pumps.example/1 | Wiki · Moves water.",
      "P 900 |  | $99 · 4.7 (10K) · $9 × 11",
      "wells | pumps.example/3 | ",
      " | pumps.example/4 | Pump TV · Feb 9",
      "Pump wins | pumps.example/5 | News · Live",
    ]);
  });

  test("that Google could not generate is no element", () => {
    expect(elementsOf({ ai_overview: { error: "Try later." } })).toHaveLength(1);
  });
});
