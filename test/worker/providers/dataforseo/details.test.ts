import { expect, test } from "vitest";
import { elementsOf } from "../../../harness/fixtures/dataforseo-items.ts";
import { linkLines } from "../../../harness/fixtures/read-page.ts";

/** What is shown of an item of DataForSEO. A link is written as `title | address | description`. */

const organic = { type: "organic", title: "a", url: "https://a.example/" };
const linksOf = (item: object) => linkLines(elementsOf(item)[0]);
const productOf = (fields: object) => linksOf({ type: "shopping", items: [{ title: "Pump", ...fields }] });

test("a business has its phone, its votes and its opening hours, and its bookings are a link of their own", () => {
  const business = {
    type: "local_pack",
    title: "Pump House",
    description: "0.1 mi · 7 Main St \n\nOpen until 9 PM\nDine-in · Takeaway \n",
    phone: "555",
    url: "https://house.example/",
    booking_url: "https://book.example/house",
    rating: { rating_type: "Max5", value: null, votes_count: 1234 },
  };
  const shown = "(1,234) · 555 · 0.1 mi · 7 Main St · Open until 9 PM · Dine-in · Takeaway";
  expect(linksOf(business)).toEqual([`Pump House | house.example/ | ${shown}`, "Pump House | book.example/house | "]);
  expect(linksOf({ ...business, url: null })).toEqual([`Pump House | book.example/house | ${shown}`]);
});

test("a text that is broken into lines within its sentences has no dots in them", () => {
  expect(productOf({ description: "A pump for \ncombined use, made to\nlast.\nSold out \n\nin spring" })).toEqual([
    "Pump |  | A pump for combined use, made to last. Sold out · in spring",
  ]);
});

test.each([
  [{ displayed_price: "$79", current: 79, regular: 99, currency: "USD" }, "$79 · 99 USD"],
  [{ displayed_price: "$79", current: 79, regular: 79, currency: "USD" }, "$79"],
  [{ displayed_price: null, current: 30, max_value: 90.5, currency: "USD" }, "30–90.5 USD"],
  [{ displayed_price: "", current: 30, max_value: 30 }, "30"],
  [{ currency: "USD" }, ""],
  [null, ""],
])("a product with the price %j costs %j", (price, text) => {
  expect(productOf({ price })).toEqual([`Pump |  | ${text}`]);
});

test("a product has its seller, its marketplace and all its texts, each once", () => {
  const texts = { marketplace: "Market", subtitle: "Blue", description: "Pumps Inc", keyword: "pump 9" };
  expect(productOf({ ...texts, source: "Pumps Inc", rating: { value: 4.5, votes_count: 0 } })).toEqual([
    "Pump |  | Pumps Inc · Market · 4.5 (0) · Blue · pump 9",
  ]);
  expect(productOf({ rating: { value: null, votes_count: 0 } })).toEqual(["Pump |  | "]);
});

test("two answers to one question are two links, and so are two questions that one page answers", () => {
  const items = [
    { question_text: "Which pump?", answer_text: "A.", source: "Forum", url: "https://one.example/", votes: 170 },
    { question_text: "Which pump?", answer_text: "B.", source: "Board", url: "https://two.example/" },
    { question_text: "Why?", answer_text: "C.", url: "https://one.example/" },
  ];
  expect(linksOf({ type: "questions_and_answers", items })).toEqual([
    "Which pump? | one.example/ | A. · Forum · votes: 170",
    "Which pump? | two.example/ | B. · Board",
    "Why? | one.example/ | C.",
  ]);
});

test("an organic result has the results and the keywords that Google shows below it", () => {
  const texts = { description: "Text.", pre_snippet: "3 days ago — ", extended_snippet: "Brand: Nimbus · In stock" };
  const related_result = [{ title: "b", url: "https://a.example/b", ...texts }];
  const extended_people_also_search = ["small pumps", "small pumps"];
  expect(linksOf({ ...organic, related_result, extended_people_also_search })).toEqual([
    "b | a.example/b | 3 days ago · Text. · Brand: Nimbus · In stock",
    "small pumps |  | ",
  ]);
});

test("a consideration has its answer, with the page it is from and its searches", () => {
  const answer = {
    type: "product_considerations_expanded_element",
    featured_title: "Yes",
    snippet: "It is.",
    title: "All pumps",
    breadcrumb: "pumps.example › all",
    url: "https://pumps.example/",
    related_searches: ["quiet pumps"],
  };
  const items = [{ title: "Is it loud?", consideration_category: "Noise", expanded_element: [answer] }];
  expect(linksOf({ type: "product_considerations", title: "Before you buy", items })).toEqual([
    "Is it loud? | pumps.example/ | Yes · It is. · All pumps · pumps.example › all · Noise",
    "quiet pumps |  | ",
  ]);
});

test("a word has its meanings, and reviews of a place their numbers", () => {
  const word = { type: "dictionary", title: null, keyword: "pump", snippet: "/pʌmp/", text: "a machine" };
  const reviews = { type: "google_reviews", reviews_count: 9031, rating: { value: 4.8, votes_count: 803 } };
  expect(elementsOf(word, { ...reviews, rating: { value: 4.8 } }, reviews)).toMatchObject([
    { title: "pump", description: "/pʌmp/", richSnippet: { top: [], bottom: ["a machine"] } },
    { richSnippet: { top: ["4.8 (9,031)"] } },
    { richSnippet: { top: ["4.8 (803)", "(9,031)"] } },
  ]);
});

test.each([
  ["10/22/2025 00:00:00", ["Oct 22, 2025"]],
  ["Ann · 10/22/2025 00:00:00", ["Ann", "Oct 22, 2025"]],
  ["Oct 22, 2025", ["Oct 22, 2025"]],
  [null, ["Oct 22, 2025"]],
])("a date before the snippet is shown once, above it: %j", (pre_snippet, top) => {
  const dated = { description: "Oct 22, 2025 — A pump.", timestamp: "2025-10-22 00:00:00 +00:00", pre_snippet };
  const [found] = elementsOf({ ...organic, ...dated });
  expect(found).toMatchObject({ description: "A pump.", richSnippet: { top } });
});

test("a date is a day, an age stays one, and no text has two spaces", () => {
  const found = elementsOf(
    { ...organic, pre_snippet: "10/22/2025 00:00:00", timestamp: "2025-10-22 00:00:00 +00:00" },
    { ...organic, breadcrumb: "10+ reactions  ·  1 year ago", timestamp: "2024-12-06 14:14:17 +00:00" },
    { ...organic, breadcrumb: "https://a.example › news", timestamp: "2025-10-22 00:00:00 +00:00" },
  );
  expect(found.map(({ breadcrumb, richSnippet }) => [breadcrumb, richSnippet.top])).toEqual([
    ["", ["2025-10-22"]],
    ["10+ reactions · 1 year ago", []],
    ["https://a.example › news", ["2025-10-22"]],
  ]);
});
