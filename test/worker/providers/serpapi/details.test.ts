import { describe, expect, test } from "vitest";
import { elementsOf, firstOf, linksOf, product, row } from "../../../harness/fixtures/serpapi-page.ts";

describe("a business has its details", () => {
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
    phone: "(555) 010-0100",
    description: "In-store\npickup",
    service_options: { in_store_pickup: true, delivery: false },
    extensions: ["Has pumps"],
    gps_coordinates: { latitude: 1.5, longitude: 2.5 },
    links: { website: "https://shop.example/", directions: "https://maps.example/to" },
  };

  test("and its line breaks join no words and split no sentence", () => {
    expect(linksOf({ local_results: { places: [place] } })).toEqual([
      {
        title: "Pump Shop",
        url: "https://shop.example/",
        description:
          "4.5 (1,200) · Hardware · 1 Main St · Springfield · Open ⋅ Closes 8 PM · (555) 010-0100 · In-store pickup · " +
          "Service options: In store pickup · Has pumps",
      },
    ]);
  });

  test("and the number of its reviews without a rating", () => {
    const [link] = linksOf({ local_results: [{ title: "Pump Shop", reviews: 13 }] });
    expect(link?.description).toBe("(13)");
  });

  test("and, in a list of ads, the heading of the list", () => {
    const local_ads = { title: "Sponsored", see_more_text: "More plumbers", ads: [{ title: "Ann", ad: true }] };
    expect(firstOf({ local_ads })).toMatchObject({
      type: "local_pack",
      title: "Sponsored",
      richSnippet: { bottom: ["See more text: More plumbers"] },
      siteLinks: [{ title: "Ann", description: "Ad" }],
    });
  });
});

test("a product has the place that SerpApi tells: above or below the organic results", () => {
  const at = (block_position: string) => ({
    ...product,
    link: `https://shop.example/${block_position}`,
    block_position,
  });
  const inline_shopping_results = ["top", "right", "bottom"].map(at);
  expect(elementsOf({ inline_shopping_results }).map(({ type, siteLinks }) => [type, siteLinks.length])).toEqual([
    ["shopping", 2],
    ["organic", 0],
    ["shopping", 1],
  ]);
});

test("a carousel of videos has the videos in it, and its heading", () => {
  const videos = [{ title: "Pumping", link: "https://video.example/1", channel: "Pump TV" }];
  expect(firstOf({ inline_video_carousels: [{ title: "How to prime", videos }] })).toMatchObject({
    type: "video",
    richSnippet: { bottom: ["Title: How to prime"] },
    siteLinks: [{ title: "Pumping", url: "https://video.example/1", description: "Pump TV" }],
  });
});

describe("a question", () => {
  test("has its list or table", () => {
    const related_questions = [
      { question: "Which?", snippet: "These:", list: ["Deep ones.", "Small ones."] },
      {
        question: "How much?",
        table: [
          ["Pump", "Price"],
          ["P 900", "$99"],
        ],
        source: "FAQ",
      },
    ];
    expect(linksOf({ related_questions }).map(({ description }) => description)).toEqual([
      "These: Deep ones. Small ones.",
      "Pump: Price · P 900: $99 · FAQ",
    ]);
  });

  test("whose generated answer would take a second search has none", () => {
    const related_questions = [
      {
        question: "Which?",
        type: "ai_overview",
        page_token: "t",
        serpapi_ai_overview_link: "https://serpapi.example/",
      },
    ];
    expect(linksOf({ related_questions })).toEqual([{ title: "Which?", url: "", description: "" }]);
  });
});

describe("an organic result has all its parts", () => {
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
    expect(elementsOf({ organic_results: [result] })).toMatchObject([
      {
        richSnippet: { bottom: ["Power: 900 W", "Weight: 9 kg", "Loud? · No.", "Missing: garden"] },
        siteLinks: [
          { title: "Pump wins", url: "https://news.example/1", description: "News · 1 hour ago" },
          { title: "P 900", url: "https://pumps.example/900", description: "4.5 (12)" },
        ],
      },
    ]);
  });
});

test("an element with nothing in it is left out", () => {
  const parts = { refinements: { chips: [] }, filters: [{ options: [{ title: "", link: "https://g.example/" }] }] };
  expect(elementsOf(parts)).toHaveLength(1);
});

test("an element of an unknown kind has the facts in its parts", () => {
  const sports_results = {
    title: "Pump United",
    rankings: "1st in league",
    thumbnail: "https://i.example/",
    games: [
      {
        status: "Final",
        teams: [
          { name: "Pump United", score: "2", kgmid: "/m/1" },
          { name: "Well FC", score: "1" },
        ],
      },
    ],
    league: { name: "Pump League", season: 2026 },
  };
  expect(firstOf({ sports_results })).toMatchObject({
    title: "Pump United",
    richSnippet: {
      bottom: ["Rankings: 1st in league", "Final · Pump United 2 · Well FC 1", "League: Name Pump League, Season 2026"],
    },
  });
});

test("a related search has the things that Google lists under it, each with its address", () => {
  const related_searches = [
    {
      query: "pump types",
      link: "https://google.example/?q=types",
      items: [{ name: "Jet", link: "https://g.example/j" }],
    },
    { block_position: 1, items: [{ name: "Hand", image: "https://i.example/", link: "https://g.example/h" }] },
  ];
  expect(linksOf({ related_searches })).toEqual([
    { title: "pump types", url: "https://google.example/?q=types", description: "" },
    { title: "Jet", url: "https://g.example/j", description: "pump types" },
    { title: "Hand", url: "https://g.example/h", description: "" },
  ]);
});

test("a question has the first page that its generated answer cites, and no link for the others", () => {
  const text_blocks = [{ type: "paragraph", snippet: "It is.", reference_indexes: [0, 1] }];
  const references = ["a", "b"].map((name, index) => ({
    title: name,
    link: `https://${name}.example/`,
    source: "Site",
    snippet: "Sep 24, 2018",
    index,
  }));
  const question = { question: "Is it?", type: "ai_overview", text_blocks, references };
  const own = { ...question, link: "https://own.example/" };
  expect(linksOf({ related_questions: [question, own] })).toEqual([
    { title: "Is it?", url: "https://a.example/", description: "It is. · a · Site · Sep 24, 2018" },
    { title: "Is it?", url: "https://own.example/", description: "It is." },
  ]);
});

test("a thread has the number of its answers, a profile its author, and a page the word that it lacks", () => {
  const list = [{ title: "What is it?", link: "https://forum.example/2", answer_count: 147, date: "Sep 25, 2024" }];
  const organic_results = [
    { ...row, source: "Reddit · r/pumps", sitelinks: { list } },
    { ...row, source: "Pumps", missing: ["tea"], must_include: { word: "tea", link: "https://google.example/" } },
  ];
  expect(elementsOf({ organic_results })).toMatchObject([
    {
      richSnippet: { top: ["Reddit · r/pumps"] },
      siteLinks: [{ title: "What is it?", description: "Answer count: 147 · Sep 25, 2024" }],
    },
    { richSnippet: { top: [], bottom: ["Must include: tea", "Missing: tea"] }, siteLinks: [] },
  ]);
});

test("the title of an ad has no direction marks", () => {
  const ads = [{ ...row, title: "\u200ePumps now\u200e", block_position: "top" }];
  expect(firstOf({ ads })?.title).toBe("Pumps now");
});
