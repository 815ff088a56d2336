import { afterAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { result, resultTypes } from "../../../../shared/results.ts";
import { openGoogle } from "../../../harness/processes/google-engine.ts";
import { query } from "../../../harness/fixtures/queries.ts";

const deadlineMs = 20_000;
const google = openGoogle();
afterAll(() => google.close());

async function resultsOf(fields: object) {
  const answer = await google.search(query(fields), deadlineMs);
  if (!answer.ok) throw new Error(`The sandbox failed: ${answer.code}.`);
  return answer;
}

test("the first page has every type of result, in the shape of the contract", async () => {
  const { results, totalResultsCount } = await resultsOf({});
  expect(new Set(results.map(({ type }) => type))).toEqual(new Set(resultTypes));
  expect(z.array(result).parse(results)).toEqual(results);
  expect(results.map(({ rank }) => rank)).toEqual(results.map((_, row) => row + 1));
  expect(results.filter(({ type }) => type === "organic")).toHaveLength(10);
  expect(results.some(({ siteLinks, type }) => type === "organic" && siteLinks.length > 0)).toBe(true);
  expect(totalResultsCount).toBeGreaterThanOrEqual(100);
});

test("the same query always has the same answer; another location, language or device has a different one", async () => {
  const { results } = await resultsOf({});
  expect((await resultsOf({})).results).toEqual(results);
  for (const fields of [{ location: "Lyon, France" }, { language: "de" }, { device: "mobile" }, { keyword: "other" }]) {
    expect((await resultsOf(fields)).results).not.toEqual(results);
  }
});

test("a deeper search begins with the same page and has up to 100 results with distinct URLs", async () => {
  const [shallow, deep] = [await resultsOf({}), await resultsOf({ depth: 100 })];
  expect(deep.results.slice(0, shallow.results.length)).toEqual(shallow.results);
  const urls = deep.results.filter(({ type }) => type === "organic").map(({ url }) => url);
  expect(new Set(urls).size).toBe(100);
});

test("all sites have the reserved domain .example", async () => {
  const { results } = await resultsOf({ keyword: "東京 <b>pump</b> \u202f ☂", depth: 30 });
  const urls = results
    .flatMap(({ url, siteLinks }) => [url, ...siteLinks.map((link) => link.url)])
    .filter((url) => url !== "");
  expect(urls.every((url) => new URL(url).hostname.endsWith(".example"))).toBe(true);
  expect(JSON.stringify(results)).not.toContain("<b>");
});

describe("triggers in the keyword", () => {
  test("sandbox:empty returns a page without results, which is a success", async () => {
    expect(await resultsOf({ keyword: "pump sandbox:empty" })).toMatchObject({ results: [], totalResultsCount: 0 });
  });

  test("sandbox:corrected returns the page of the other words, and says that it searched those", async () => {
    const corrected = await resultsOf({ keyword: "pump sandbox:corrected" });
    expect(corrected.searchedKeyword).toBe("pump");
    expect(corrected.results).toEqual((await resultsOf({ keyword: "pump" })).results);
    expect(await resultsOf({ keyword: "pump" })).not.toHaveProperty("searchedKeyword");
  });

  test("sandbox:slow returns the page late", async () => {
    expect((await resultsOf({ keyword: "sandbox:slow=30 pump" })).results.length).toBeGreaterThan(10);
  });

  test.each([
    ["sandbox:error", "engine_error", { reason: "provider_unavailable" }],
    ["sandbox:refused", "engine_error", { reason: "provider_refused" }],
    ["sandbox:garbage", "engine_error", { reason: "unreadable_answer" }],
    ["sandbox:timeout", "engine_timeout", {}],
    ["sandbox:slow=5000", "engine_timeout", {}],
    ["sandbox:slow=1 sandbox:refused", "engine_error", { reason: "provider_refused" }],
  ])("%s fails with %s", async (words, code, details) => {
    const answer = await google.search(query({ keyword: `pump ${words}` }), 300);
    expect(answer).toMatchObject({ ok: false, code, details, trace: { provider: "sandbox", costMicroUsd: 0 } });
  });

  test("only whole words are triggers", async () => {
    expect((await resultsOf({ keyword: "what is xsandbox:error or sandbox:errors" })).results.length).toBeGreaterThan(
      10,
    );
  });
});
