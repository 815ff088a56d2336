import { isDeepStrictEqual } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Element } from "../../../worker/providers/provider.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { Row } from "../../../worker/providers/serpapi/fields.ts";
import { cpuMsOf } from "../../harness/assertions/cpu-time.ts";
import { element } from "../../harness/assertions/element.ts";
import { elementsOf as elementsOfItems } from "../../harness/fixtures/dataforseo-items.ts";
import { itemsOfEveryType, organic } from "../../harness/fixtures/dataforseo-page.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";
import { readWith } from "../../harness/fixtures/read-page.ts";
import { pageOf, partsWithEveryElement, row } from "../../harness/fixtures/serpapi-page.ts";
import { contractCases } from "./contract-cases.ts";
import { harmfulText, unexpectedValues } from "./hostile-answers.ts";

/** Answers that would break an adapter, beyond those of the contract: in every field that it knows, very large or very deep. */

const open = (name: "serpapi" | "searchapi" | "dataforseo") =>
  openProvider(name, engineConfig(contractCases[name].settings));

const odd = [harmfulText, 7, true, [], [{}], [[["x"]]], { items: {} }, { expanded: 7 }, { top: { extensions: "a" } }];
const unexpectedParts = [...unexpectedValues, ...odd, { top: 7, bottom: [] }, JSON.parse('{"__proto__":{"title":[]}}')];

// One assertion for all cases of a test: thousands of them take seconds.

describe("an unexpected value of SerpApi", () => {
  test("in an optional field of a result loses only that field", () => {
    const fields =
      "displayed_link snippet date author price rating reviews extensions rich_snippet rich_snippet_table rich_snippet_list sitelinks redirect_link thumbnail";
    const wrong = fields.split(" ").flatMap((field) =>
      unexpectedParts
        .filter((value) => {
          const { elements } = pageOf({ organic_results: [{ ...row, [field]: value }] });
          const [found] = elements;
          const isKept = found?.type === "organic" && found.title === row.title && found.url === row.link;
          return elements.length !== 1 || !isKept || isUnsafe(elements);
        })
        .map((value) => `${field} = ${JSON.stringify(value)}`),
    );
    expect(wrong).toEqual([]);
  });

  test("in another part leaves a page of complete elements", () => {
    const wrong = Object.entries(partsWithEveryElement).flatMap(([name, value]) =>
      unexpectedParts
        .flatMap((unexpected) => brokenVariants(value, unexpected))
        .filter((part) => {
          const { elements } = pageOf({ organic_results: [row], [name]: part });
          const isEachComplete = elements.every((found) => element.safeParse(found).success);
          const organicRows = elements.filter(({ type }) => type === "organic").length;
          return !isEachComplete || organicRows !== 1 || isUnsafe(elements);
        })
        .map((part) => `${name} = ${JSON.stringify(part)}`),
    );
    expect(wrong).toEqual([]);
  });
});

test("an unexpected value of DataForSEO in an optional field of an item loses only that field", () => {
  const itemWithEveryField = { ...Object.assign({}, ...itemsOfEveryType), ...organic };
  const ofFewItems =
    "booking_url date_from description_rows expanded_element link mentioned_in extended_people_also_search";
  const fields = [...Object.keys(itemWithEveryField), ...ofFewItems.split(" ")];
  const types = ["organic", "paid", "knowledge_graph", "people_also_ask", "ai_overview", "local_pack", "new"];
  const optional = fields.filter((name) => name !== "type" && name !== "title" && name !== "url");
  const wrong = types.flatMap((type) =>
    optional.flatMap((field) =>
      unexpectedParts
        .filter((value) => !isOneSafeElement(elementsOfItems({ ...itemWithEveryField, type, [field]: value })))
        .map((value) => `${type}: ${field} = ${JSON.stringify(value)}`),
    ),
  );
  expect(wrong).toEqual([]);
});

const nested = (opening: string, closing: string) => `${opening.repeat(5_000)}[]${closing.repeat(5_000)}`;
const longList = (member: string) => `[${`${member},`.repeat(10_000)}${member}]`;
const pageWith = (parts: string) =>
  `{"search_metadata":{"status":"Success"},"organic_results":[${JSON.stringify(row)}],${parts}}`;
const itemsOf = (...items: unknown[]) =>
  `{"status_code":20000,"tasks":[{"status_code":20000,"result":[{"items":${JSON.stringify(items)}}]}]}`;
const deepItem = itemsOf({ type: "new", items: "deep" }).replace('"deep"', nested('[{"title":"a","items":', "}]"));
const deepOverview = itemsOf({ type: "ai_overview", items: "deep" }).replace(
  '"deep"',
  nested('[{"text":"a","components":', "}]"),
);
const panelTexts = Array.from({ length: 12_000 }, (_, at) => ({
  type: "knowledge_graph_description_item",
  text: `${"a".repeat(60)}${at}`,
}));
const panel = { type: "knowledge_graph", title: "a", description: "a".repeat(2e6), items: panelTexts };
const longTexts = [
  { type: "organic", title: "a", url: "https://a.example/", pre_snippet: `a${" ".repeat(1e6)}b` },
  { type: "ai_overview", items: ["![", "](", "[", "# "].map((part) => ({ markdown: part.repeat(1e4) })) },
  { type: "knowledge_graph", title: "a", description: "a\n".repeat(1e5) },
];
const serpapiParts = ["ai_overview", "answer_box", "knowledge_graph", "new_results"];
const deepPart = nested('{"title":"a","text_blocks":[{"list":[', "]}]}");
const longParts = ["related_questions", "new_results", "ads", "immersive_products"];
const members = ["{}", '[{"title":"a"}]', '{"list":[{}]}'];
const manyLines = `[{"rich_snippet":{"extensions":[${Array(40_000).fill('"(1)"').join()}]}}]`;

test.each<[string, "serpapi" | "searchapi" | "dataforseo", ...bodies: string[]]>([
  ["very deep nesting", "serpapi", ...serpapiParts.map((part) => pageWith(`"${part}":${deepPart}`))],
  ["very deep nesting", "dataforseo", deepItem, deepOverview],
  ["very deep nesting", "searchapi", pageWith(`"ai_overview":{"text_blocks":${nested('[{"items":', "}]")}}`)],
  [
    "very long lists",
    "serpapi",
    ...longParts.flatMap((part) => members.map((m) => pageWith(`"${part}":${longList(m)}`))),
  ],
  ["very long texts", "dataforseo", itemsOf(...longTexts)],
  ["twelve thousand texts beside a very long one", "dataforseo", itemsOf(panel)],
  [
    "forty thousand lines in one row",
    "searchapi",
    pageWith(`"related_searches":[{"query":"a"}],"organic_results":${manyLines}`),
  ],
  [
    "names of JavaScript's own",
    "searchapi",
    pageWith('"__proto__":{"a":[{}]},"constructor":{"a":1},"toString":[{"b":2}]'),
  ],
])("%s of %s cost neither the page nor more than linear time", (_, name, ...bodies) => {
  const provider = open(name);
  for (const body of bodies) {
    let page: unknown;
    expect(cpuMsOf(() => (page = readWith(provider, 200, body)))).toBeLessThan(2_000);
    expect(page).toHaveProperty("elements.0");
  }
});

test("very deep nesting is read up to a limit", () => {
  for (const part of serpapiParts) {
    const page = readWith(open("serpapi"), 200, pageWith(`"${part}":${deepPart}`));
    expect(page).toHaveProperty("elements.length", 2);
    expect(JSON.stringify(page).length).toBeLessThan(5_000);
  }
});

test.each([
  ["results", `"organic_results":${longList(JSON.stringify(row))}`],
  ["parts", Array.from({ length: 10_000 }, (_, index) => `"part_${index}":{"a":1}`).join()],
])("too many %s of SerpApi are unreadable, in linear time", (_, parts) => {
  const read = () => expect(readWith(open("serpapi"), 200, pageWith(parts))).toMatchObject({ failure: "unreadable" });
  expect(cpuMsOf(read)).toBeLessThan(5_000);
});

test("very long lists of DataForSEO are read up to a limit, and a long heading over many links is not multiplied", () => {
  const pumps = (length: number) => Array.from({ length }, (_, at) => ({ title: `Pump ${at}` }));
  const extended_snippet = "x·".repeat(1_000);
  const [jobs, found] = elementsOfItems(
    { type: "jobs", items: pumps(10_000) },
    { type: "organic", title: "a", url: "https://a.example/", extended_snippet },
  );
  expect([jobs?.siteLinks.length, found?.richSnippet.bottom.length]).toEqual([500, 50]);
  const long = { title: "x".repeat(1e5), description: "y".repeat(1e5), links: pumps(400) };
  const [heading] = elementsOfItems({ type: "new", items: [long] });
  expect(heading?.siteLinks.length).toBeGreaterThan(100);
  expect(JSON.stringify(heading).length).toBeLessThan(2e5);
});

test("a long heading of SerpApi over many links is not multiplied", () => {
  const pages = Array.from({ length: 150 }, (_, at) => ({
    title: `Pump ${at}`,
    link: `${row.link}${at}`,
    snippet: "a",
  }));
  const long = "x".repeat(1e5);
  const searches = { query: long, items: pages.map(({ title, link }) => ({ title, link })) };
  const { elements } = pageOf({
    organic_results: [row],
    related_searches: [searches],
    new_results: [{ snippet: long, pages }],
  });
  const [, ...groups] = elements.map(({ siteLinks }) => siteLinks);
  expect(groups.map((links) => links.length)).toEqual([150, 151]);
  // A text that was cut ends with an ellipsis: the first link has the whole heading.
  expect(groups[0]?.[0]?.description).toMatch(/^x{9999}…$/);
  expect(groups[0]?.[1]?.description).toBe(`${"x".repeat(200)} · a`);
});

test("megabytes of names leave none of them in memory", () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage: () => void = runInNewContext("gc");
  const heldBytes = () => {
    // What the first one finds may be freed by the second one only.
    collectGarbage();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heldBytes();
  for (let megabytes = 1; megabytes <= 50; megabytes += 1)
    new Row(JSON.parse(`{"${`${megabytes}`.padEnd(1_000_000, "x")}": "a"}`)).rest();
  expect(heldBytes() - before).toBeLessThan(25_000_000);
});

/** The part replaced by an unexpected value, or with that value in each field of the object or of the first member of the list. */
function brokenVariants(part: unknown, unexpected: unknown): unknown[] {
  const isList = Array.isArray(part);
  const fields: object = Object(isList ? part[0] : part);
  const withOneBroken = Object.keys(fields).map((field) => ({ ...fields, [field]: unexpected }));
  return [unexpected, [unexpected], ...(isList ? withOneBroken.map((member) => [member]) : withOneBroken)];
}

/** One complete element without scripts, which reading with the schema leaves as it is. */
function isOneSafeElement([found, ...more]: readonly Element[]): boolean {
  const parsed = element.safeParse(found);
  const isComplete = parsed.success && isDeepStrictEqual(parsed.data, found);
  return more.length === 0 && isComplete && !isUnsafe([found]);
}

function isUnsafe(elements: readonly unknown[]): boolean {
  return /<script|"url":"javascript/.test(JSON.stringify(elements));
}
