import { expect, test } from "vitest";
import { boundPages } from "../../../worker/providers/policies/provider-client.ts";
import { buildElement } from "../../../worker/providers/build-element.ts";
import { plainText, plainUrl, textCharactersMax } from "../../../worker/providers/sanitize.ts";
import { answerBytesMax, compactResponseBody, searchResponseBody } from "../../../shared/search-answer.ts";
import { writeAnswerBody } from "../../../worker/take-jobs.ts";
import { boundResults, mergePages } from "../../../worker/engine/google-engine.ts";
import { query } from "../../harness/fixtures/queries.ts";
import { page } from "../providers/policies/fixtures.ts";

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
const job = (fields: object = {}) => ({
  requestId: "req_01m80e03wze4cr8a90msysevh5",
  organizationId: "org_01h455vb4pex5vsknk084sn02q",
  tokenId: "tok_01h455vb4pex5vsknk084sn02q",
  limits: {},
  query: query({ depth: 100, keyword: '"'.repeat(700), ...fields }),
  priceMils: 5,
  remainingMils: 995,
  openSearches: 1,
  unpaidCallsPerHour: 50,
  hadLittleTime: false,
  deadlineAtMs: 30_000,
  enqueuedAtMs: 0,
  timeoutMs: 30_000,
  inbox: "inbox:test",
});

test("an oversized answer has the first results with their ranks, at most 2 MiB, and the mark", () => {
  const merged = mergePages(["a", "b", "c"].map(hugePage), 100);
  const bounded = boundResults(merged);
  expect(bounded.truncated).toBe(true);
  expect(bounded.results).toEqual(merged.slice(0, bounded.results.length));
  const answer = { ok: true, results: bounded.results, totalResultsCount: 7, truncated: true } as const;
  const trace = { provider: "fake", calls: [], costMicroUsd: 0 };
  const written = (fields: object) => writeAnswerBody(job(fields), { ...answer, trace });
  expect(written({}).length).toBeLessThanOrEqual(answerBytesMax);
  expect(written({}).length).toBeGreaterThan(0.7 * answerBytesMax);
  const { totalResultsCount, results } = searchResponseBody.parse(JSON.parse(written({}).toString()));
  expect({ totalResultsCount, ranks: results.map(({ rank }) => rank) }).toEqual({
    totalResultsCount: 7,
    ranks: bounded.results.map((_, index) => index + 1),
  });
  expect(compactResponseBody.parse(JSON.parse(written({ format: "compact" }).toString())).truncated).toBe(true);
});

test("an answer that fits is left as it is, without the mark", () => {
  const results = mergePages([page({ elements: [hugeElement("a")] })], 10);
  expect(boundResults(results)).toEqual({ results, truncated: false });
});

test("the pages of a search keep no elements that cannot be in its answer, whichever page comes first", () => {
  const pages = [];
  for (const [index, name] of [
    [0, "a"],
    [2, "c"],
    [1, "b"],
    [3, "d"],
  ] as const) {
    pages[index] = hugePage(name);
    boundPages(pages);
  }
  expect(pages.flatMap(({ elements }) => elements).length).toBeLessThan(25);
  expect(pages.map(({ truncated }) => truncated)).toEqual([undefined, undefined, true, true]);
});

test("a text has at most 10,000 characters, and no surrogate pair is cut in half", () => {
  for (const shift of ["", "a"]) {
    const text = plainText(shift + "\u{1f600}".repeat(textCharactersMax));
    expect(Array.from(text)).toHaveLength(textCharactersMax);
    expect(text.isWellFormed()).toBe(true);
    expect(text.endsWith("\u{1f600}…")).toBe(true);
  }
  expect(plainText("a".repeat(textCharactersMax))).toBe("a".repeat(textCharactersMax));
});

test("a URL that is too long is no URL, also if it is only once it is encoded", () => {
  expect(plainUrl(`https://a.example/${"a".repeat(textCharactersMax)}`)).toBe("");
  expect(plainUrl(`https://a.example/${" a".repeat(4_000)}`)).toBe("");
});
