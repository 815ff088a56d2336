import { expect, test } from "vitest";
import { searchResponseBody, answerBytesMax, compactResponseBody } from "../../shared/search-answer.ts";
import { writeAnswerBody } from "../../worker/take-jobs.ts";
import { mergePages, boundResults } from "../../worker/engine/google-engine.ts";
import { query, searchJob } from "../harness/fixtures/queries.ts";
import { page, pageTitled } from "./providers/policies/fixtures.ts";
import { boundPages } from "../../worker/providers/policies/provider-client.ts";
import { buildElement } from "../../worker/providers/build-element.ts";
import { textCharactersMax } from "../../worker/providers/sanitize.ts";

const job = (fields: object = {}) => searchJob({ query: query(fields) });

const video = pageTitled("video").elements.map((element) => ({ ...element, type: "video" as const }));
const pages = [pageTitled("one"), page({ elements: video }), pageTitled("two")];
const answer = {
  ok: true as const,
  results: mergePages(pages, 10),
  totalResultsCount: 7,
  trace: { provider: "fake", calls: [], costMicroUsd: 0 },
  from: "provider" as const,
  atMs: Date.UTC(2026, 10, 1),
};

const usual = { priceMils: 5, tellsProvider: true };
const written = (fields: object = {}, options = usual, of: object = answer) =>
  JSON.parse(writeAnswerBody(job(fields), { ...answer, ...of }, options).toString());

test("without types and format an answer has the keys that it always had, in the contract's order", () => {
  const body = searchResponseBody.parse(written());
  expect(Object.keys(written())).toEqual([
    "requestId",
    "query",
    "creditsCharged",
    "creditsRemaining",
    "totalResultsCount",
    "results",
  ]);
  expect(body).toMatchObject({ query: query(), totalResultsCount: 7, results: answer.results });
});

test("the body is the answer's JSON in UTF-8, whichever characters the provider sent", () => {
  for (const title of ["plain", "é", "one \u203a two", "漢字", "\u{1f469}\u200d\u{1f52c}", "half \ud83d", ""]) {
    const results = mergePages([pageTitled(title)], 10);
    const text = writeAnswerBody(job(), { ...answer, results }, usual).toString();
    expect(text).toBe(JSON.stringify(JSON.parse(text)));
    expect(JSON.parse(text).results).toEqual(results);
  }
});

test("types, target domain and format are applied together, and ranks stay those of the whole page", () => {
  const titles = (fields: object) => written(fields).results.map(({ title }: { title: string }) => title);
  expect(written({ types: ["video"] }).results).toEqual(answer.results.slice(1, 2));
  expect(titles({ types: ["organic"], targetDomain: "two.example" })).toEqual(["two"]);
  expect(titles({ types: ["paid"] })).toEqual([]);
  expect(titles({ format: "compact" })).toEqual(["one", "two"]);
  expect(titles({ format: "compact", targetDomain: "one.example" })).toEqual(["one"]);
  // Equal searches share these results.
  expect(answer.results).toEqual(mergePages(pages, 10));
});

test("the compact format has title, URL and description of the organic results, for the same price", () => {
  const organic = answer.results.filter(({ type }) => type === "organic");
  expect(written({ format: "compact" })).toEqual({
    requestId: job().requestId,
    query: { ...query(), format: "compact" },
    creditsCharged: 5,
    creditsRemaining: 995,
    results: organic.map(({ title, url, description }) => ({ title, url, description })),
  });
});

test("include adds to either format when and by whom the answer was fetched, unless the operator does not tell by whom", () => {
  const asked = { include: ["answeredBy", "fetchedAt"] };
  const fetched = { fetchedAt: "2026-11-01T00:00:00.000Z" };
  const full = searchResponseBody.parse(written(asked));
  expect(full).toMatchObject({ ...fetched, answeredBy: "fake", query: { include: ["fetchedAt", "answeredBy"] } });
  expect(compactResponseBody.parse(written({ ...asked, format: "compact" }))).toMatchObject(fetched);
  const { answeredBy: _, ...untold } = full;
  expect(written(asked, { ...usual, tellsProvider: false })).toEqual(untold);
  expect(written({ include: ["answeredBy"] })).not.toHaveProperty("fetchedAt");
});

test("a corrected spelling is named at the end of the query, in both formats", () => {
  for (const fields of [{}, { types: ["organic"] }, { format: "compact" }]) {
    const body = written(fields, usual, { searchedKeyword: "garden pumps" });
    expect(body.query).toEqual({ ...query(fields), searchedKeyword: "garden pumps" });
    expect(Object.keys(body.query).at(-1)).toBe("searchedKeyword");
  }
});

const long = '漢"'.repeat(textCharactersMax);
const hugeElement = (name: string) =>
  buildElement("organic", {
    title: long,
    url: `https://pumps.example/${name}`,
    description: long,
    top: Array(20).fill(long),
    siteLinks: Array.from({ length: 30 }, (_, row) => ({ title: `${row} ${long}`, description: long })),
  });
const hugePage = (name: string) => page({ elements: Array.from({ length: 10 }, (_, row) => hugeElement(name + row)) });
test("an oversized answer has the first results with their ranks, at most 2 MiB, and the mark", () => {
  const merged = mergePages(["a", "b", "c"].map(hugePage), 100);
  const bounded = boundResults(merged);
  expect(bounded.truncated).toBe(true);
  expect(bounded.results).toEqual(merged.slice(0, bounded.results.length));
  const oversized = { ...answer, results: bounded.results, truncated: true } as const;
  const bodyOf = (fields: object) =>
    writeAnswerBody(job({ depth: 100, keyword: '"'.repeat(700), ...fields }), oversized, usual);
  expect(bodyOf({}).length).toBeLessThanOrEqual(answerBytesMax);
  expect(bodyOf({}).length).toBeGreaterThan(0.7 * answerBytesMax);
  const { totalResultsCount, results } = searchResponseBody.parse(JSON.parse(bodyOf({}).toString()));
  expect({ totalResultsCount, ranks: results.map(({ rank }) => rank) }).toEqual({
    totalResultsCount: 7,
    ranks: bounded.results.map((_, index) => index + 1),
  });
  expect(compactResponseBody.parse(JSON.parse(bodyOf({ format: "compact" }).toString())).truncated).toBe(true);
});

test("an answer that fits is left as it is, without the mark", () => {
  const results = mergePages([page({ elements: [hugeElement("a")] })], 10);
  expect(boundResults(results)).toEqual({ results, truncated: false });
});

test("the pages of a search keep no elements that cannot be in its answer, whichever page comes first", () => {
  const fetched = [];
  for (const [index, name] of [
    [0, "a"],
    [2, "c"],
    [1, "b"],
    [3, "d"],
  ] as const) {
    fetched[index] = hugePage(name);
    boundPages(fetched);
  }
  expect(fetched.flatMap(({ elements }) => elements).length).toBeLessThan(25);
  expect(fetched.map(({ truncated }) => truncated)).toEqual([undefined, undefined, true, true]);
});
