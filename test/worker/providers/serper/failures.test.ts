import { describe, expect, test } from "vitest";
import { openSerper } from "../../../../worker/providers/serper/serper.ts";
import { engineConfig } from "../../../harness/fixtures/queries.ts";
import { pageIn, readWith } from "../../../harness/fixtures/read-page.ts";

const serper = openSerper(engineConfig({ SERPER_API_KEY: "key-of-a-test" }));

describe("a page that can be read in part", () => {
  const sound = { title: "a", link: "https://a.example/" };

  test("a row that cannot be read is counted, and the others are returned", () => {
    const page = pageOf({
      organic: [7, "x", [sound], { position: 4 }, null, {}, sound],
      peopleAlsoAsk: [{ title: [] }],
    });
    expect(page.elements.map(({ type, title }) => [type, title])).toEqual([["organic", "a"]]);
    expect(page).toMatchObject({ unreadableRows: 5, hasMore: true });
    expect(pageOf({ organic: [sound, null, {}, ""] })).not.toHaveProperty("unreadableRows");
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
    ["a list without any result", { organic: [{ position: 1 }] }],
    ["a list of nothing", { organic: [null] }],
    ["a list of empty results", { organic: [{}, {}] }],
    ["elements without any content", { organic: [], peopleAlsoAsk: [{ title: [] }] }],
    ["an empty list with a message", { organic: [], message: "Unauthorized." }],
    ["only fields that are not known", { errors: [{ title: "Try again" }], error: { title: "Error" } }],
  ])("%s is unreadable", (_, body) => {
    expect(readJson(200, body)).toEqual({ failure: "unreadable" });
  });

  test("an unreadable answer with credits has a cost", () => {
    const costly = { failure: "unreadable", costMicroUsd: 2_000 };
    expect(readJson(200, { organic: null, credits: 2 })).toEqual(costly);
    expect(readJson(200, { credits: 2 })).toEqual(costly);
    for (const credits of [0, -1, 0.5, "2", null])
      expect(readJson(200, { organic: null, credits })).toEqual({ failure: "unreadable" });
  });
});

const readJson = (status: number, json: unknown) => readWith(serper, status, json);
const pageOf = (json: unknown) => pageIn(readJson(200, json));
