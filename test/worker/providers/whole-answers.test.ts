import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { element } from "../../harness/assertions/element.ts";
import { buildElement } from "../../../worker/providers/build-element.ts";
import {
  type ProviderAnswer,
  madeUpAnswers,
  readAnswer,
  recordedAnswers,
} from "../../harness/fixtures/provider-answers.ts";
import { measureCoverage, expectElement, listMissing } from "../../harness/expected-elements/expected-elements.ts";

/** Whole answers of each provider: made-up ones, and recorded ones if `../shared/fixtures` exists next to the checkout. */

const recorded = recordedAnswers(fileURLToPath(new URL("../../../../shared/fixtures", import.meta.url)));
const elements = z.array(element);
const answers = [...madeUpAnswers(), ...recorded];

describe("an answer", () => {
  test.each(answers.filter(({ expected }) => expected !== undefined))(
    "of $provider with a page is extracted in full: $name",
    (answer) => {
      const page = pageOf(answer);
      const coverage = measureCoverage(expectedPage(answer), page);
      expect(coverage.expected).toBeGreaterThan(0);
      expect(listMissing(coverage)).toEqual([]);
      expect(elements.parse(page.elements)).toEqual(page.elements);
      // DataForSEO returns the whole depth at once.
      expect(page.hasMore).toBe(answer.provider !== "dataforseo");
    },
  );

  test.each(answers)("of $provider is read as a page only if it contains one: $name", (answer) => {
    expect("elements" in readAnswer(answer)).toBe(answer.expected !== undefined);
  });

  test.each(recorded.filter(({ name }) => name.endsWith("_error_sample")))(
    "of SerpApi that was recorded as an error is a refused account: $name",
    (answer) => expect(readAnswer(answer)).toEqual({ failure: "account_refused" }),
  );
});

describe("a missing part of an answer is reported:", () => {
  const url = "https://pumps.example/";
  const raw = { title: "Pumps", url, description: "Ten <b>pumps</b>.", siteLinks: [{ title: "Deep well" }] };
  const expected = {
    elements: [expectElement("other", { title: "Hoses" }), expectElement("organic", raw)],
    hasTotal: true,
  };
  const pumps = buildElement("organic", raw);
  const hoses = buildElement("other", { title: "Hoses" });
  const lost = ["title", "url", "domain", "description", "siteLinks"].map((field) => `${field}: 0 of 1`);

  test.each([
    ["nothing", 7, [pumps, hoses], []],
    ["a result", 7, [hoses], ["elements: 1 of 2", "title: 1 of 2", ...lost.slice(1)]],
    ["a text", 7, [{ ...pumps, description: "" }, hoses], ["description: 0 of 1"]],
    ["a different URL", 7, [{ ...pumps, url: `${url}x` }, hoses], ["url: 0 of 1"]],
    ["a list", 7, [{ ...pumps, siteLinks: [] }, hoses], ["siteLinks: 0 of 1"]],
    ["a different type", 7, [{ ...pumps, type: "paid" as const }, hoses], ["title: 1 of 2", ...lost.slice(1)]],
    ["the total", 0, [pumps, hoses], ["total: 0 of 1"]],
  ])("%s", (_, totalResultsCount, found, missing) => {
    const page = { elements: found, totalResultsCount, hasMore: true, costMicroUsd: 0 };
    expect(listMissing(measureCoverage(expected, page))).toEqual(missing);
  });
});

function pageOf(answer: ProviderAnswer) {
  const page = readAnswer(answer);
  if ("failure" in page) throw new Error(`${answer.name} of ${answer.provider} could not be read: ${page.failure}.`);
  return page;
}

function expectedPage({ expected, name }: ProviderAnswer) {
  if (expected === undefined) throw new Error(`${name} contains no page.`);
  return expected;
}
