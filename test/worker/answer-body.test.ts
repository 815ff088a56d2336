import { expect, test } from "vitest";
import type { SearchJob } from "../../shared/queue/search-job.ts";
import { searchResponseBody } from "../../shared/search-answer.ts";
import { writeAnswerBody } from "../../worker/take-jobs.ts";
import { mergePages } from "../../worker/engine/google-engine.ts";
import { query } from "../harness/fixtures/queries.ts";
import { page, pageTitled } from "./providers/policies/fixtures.ts";

const job = (fields: object = {}): SearchJob => ({
  requestId: "req_01m80e03wze4cr8a90msysevh5",
  organizationId: "org_01h455vb4pex5vsknk084sn02q",
  tokenId: "tok_01h455vb4pex5vsknk084sn02q",
  limits: {},
  query: query(fields),
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

const video = pageTitled("video").elements.map((element) => ({ ...element, type: "video" as const }));
const pages = [pageTitled("one"), page({ elements: video }), pageTitled("two")];
const answer = {
  ok: true as const,
  results: mergePages(pages, 10),
  totalResultsCount: 7,
  trace: { provider: "fake", calls: [], costMicroUsd: 0 },
};

const written = (fields: object = {}) => JSON.parse(writeAnswerBody(job(fields), answer).toString());

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

test("a corrected spelling is named at the end of the query, in both formats", () => {
  for (const fields of [{}, { types: ["organic"] }, { format: "compact" }]) {
    const body = JSON.parse(writeAnswerBody(job(fields), { ...answer, searchedKeyword: "garden pumps" }).toString());
    expect(body.query).toEqual({ ...query(fields), searchedKeyword: "garden pumps" });
    expect(Object.keys(body.query).at(-1)).toBe("searchedKeyword");
  }
});
