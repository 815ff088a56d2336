import { expect, test } from "vitest";
import { madeUpAnswers } from "../harness/fixtures/provider-answers.ts";
import { fields } from "../harness/expected-elements/expected-elements.ts";
import { measureExtraction } from "./answers.ts";

const counts = measureExtraction(madeUpAnswers());
/** The fields that a provider never has. */
const missingFields: Record<string, string[]> = {
  serper: ["breadcrumb", "total"],
  searxng: ["breadcrumb", "total"],
};

test.each(counts)(
  "the adapter extracts every field of the made-up page of $provider, which has all fields that exist",
  (count) => {
    const { provider, madeUp, pages, coverage } = count;
    expect({ madeUp, pages }).toEqual({ madeUp: 1, pages: { expected: 1, extracted: 1 } });
    expect(coverage.extracted).toBe(coverage.expected);
    expect(fields.filter((field) => coverage.fields[field].extracted < coverage.fields[field].expected)).toEqual([]);
    expect(fields.filter((field) => coverage.fields[field].expected === 0)).toEqual(missingFields[provider] ?? []);
  },
);

test.each(counts)("each documented failure of $provider has its kind", ({ failures }) => {
  expect(failures.expected).toBeGreaterThanOrEqual(6);
  expect(failures.extracted).toBe(failures.expected);
});

test("an unreadable answer counts as not extracted", () => {
  const broken = madeUpAnswers().map((answer) => ({ ...answer, body: "<!doctype html>" }));
  for (const { pages, coverage } of measureExtraction(broken)) {
    expect([pages, coverage.expected, coverage.extracted]).toEqual([{ expected: 1, extracted: 0 }, 0, 0]);
  }
});
