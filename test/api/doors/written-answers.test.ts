import { expect, test } from "vitest";
import { searxng } from "../../../api/doors/searxng.ts";
import { serper } from "../../../api/doors/serper.ts";
import { tavily } from "../../../api/doors/tavily.ts";
import { elementsOf } from "../../harness/fixtures/dataforseo-items.ts";
import { pageOf } from "../../harness/fixtures/serpapi-page.ts";

/** What doors write of the elements that adapters read. */

const orders = {
  searxng: searxng.fields.parse({ q: "a", format: "json" }),
  serper: serper.fields.parse({ q: "a" }),
  tavily: tavily.fields.parse({ query: "a", include_answer: true }),
};

/** The answer of a door with these results. Of an answer, it reads only these fields. */
function written(door: keyof typeof orders, results: readonly object[]): unknown {
  const answer = { results, query: { engine: "google" } };
  return JSON.parse(JSON.stringify(orders[door].write(answer as never, { path: "/search", durationMs: 1 })));
}

test("an answer of facts, such as the weather, has its facts at each door", () => {
  const box = { type: "weather_result", temperature: "77", unit: "Celsius", location: "Delhi" };
  const { elements } = pageOf({ organic_results: [], answer_box: box });
  const weather = "weather result · Temperature: 77 · Unit: Celsius · Location: Delhi";
  expect(written("tavily", elements)).toMatchObject({ answer: weather });
  expect(written("searxng", elements)).toMatchObject({ answers: [weather] });
  expect(written("serper", elements)).toHaveProperty("answerBox", { title: "weather result", snippet: weather });
});

test("keywords and questions that several pages have are there once", () => {
  const links = (...titles: string[]) => titles.map((title) => ({ title, url: "", description: "" }));
  const results = [
    { type: "people_also_ask", siteLinks: links("Which?", "Why?") },
    { type: "related_searches", siteLinks: links("hand pump", "jet pump") },
    { type: "people_also_ask", siteLinks: links("Why?", "When?") },
    { type: "related_searches", siteLinks: links("jet pump", "well") },
  ];
  const keywords = ["hand pump", "jet pump", "well"];
  expect(written("searxng", results)).toMatchObject({ suggestions: keywords });
  expect(written("serper", results)).toMatchObject({
    relatedSearches: keywords.map((query) => ({ query })),
    peopleAlsoAsk: ["Which?", "Why?", "When?"].map((question) => ({ question })),
  });
});

test("at Serper's door a result has the links that Google shows under it, and no list without any", () => {
  const result = { type: "organic", title: "Pumps", url: "https://a.example/", description: "Pumps." };
  const siteLinks = [{ title: "Prices", url: "https://a.example/prices", description: "" }];
  const results = [
    { ...result, siteLinks },
    { ...result, siteLinks: [] },
  ];
  expect(written("serper", results)).toHaveProperty("organic", [
    {
      title: "Pumps",
      link: "https://a.example/",
      snippet: "Pumps.",
      sitelinks: [{ title: "Prices", link: "https://a.example/prices" }],
      position: 1,
    },
    { title: "Pumps", link: "https://a.example/", snippet: "Pumps.", position: 2 },
  ]);
});

test("a panel has its facts with their labels, and one without a name is left out", () => {
  const facts = [
    { type: "knowledge_graph_row_item", title: "Founded", text: "1976: in a garage" },
    { type: "knowledge_graph_row_item", title: null, text: "It has no label." },
    { type: "knowledge_graph_row_item", title: null, text: `${"It moves water, ".repeat(5)}such as: rain.` },
  ];
  const rating = { value: 4.8, votes_count: 803 };
  const panel = { type: "knowledge_graph", title: "Pumps Inc", subtitle: "Corporation", rating, items: facts };
  const elements = elementsOf({ type: "google_reviews", reviews_count: 9031, rating }, panel);
  const attributes = [{ label: "Founded", value: "1976: in a garage" }];
  expect(written("searxng", elements)).toMatchObject({ infoboxes: [{ infobox: "Pumps Inc", attributes }] });
  expect(written("serper", elements)).toHaveProperty("knowledgeGraph", {
    title: "Pumps Inc",
    type: "Corporation",
    description: "",
    attributes: { Founded: "1976: in a garage" },
  });
});

test("an answer with a description has the facts around that, and not its title", () => {
  const price = { displayed_price: "$277.69" };
  const stock = {
    type: "stocks_box",
    title: "Pumps Inc",
    snippet: "Closed.",
    source: "NYSE",
    price,
    url: "https://a.example/",
  };
  const elements = elementsOf(stock);
  expect(written("tavily", elements)).toMatchObject({ answer: "$277.69 · NYSE · Closed." });
  expect(written("serper", elements)).toMatchObject({ answerBox: { link: "https://a.example/" } });
});
