import { expect, test } from "vitest";
import { madeUpAnswers } from "../harness/fixtures/provider-answers.ts";
import { fields } from "../harness/expected-elements/expected-elements.ts";
import { measureExtraction } from "./answers.ts";

const counts = measureExtraction(madeUpAnswers());
/** What a provider never tells of any result. */
const untold: Record<string, string[]> = {
  serper: ["breadcrumb", "total"],
  searxng: ["breadcrumb", "total"],
};

test.each(counts)(
  "all that the made-up page of $provider holds comes out, and it holds all that there can be",
  (count) => {
    const { provider, madeUp, pages, coverage } = count;
    expect({ madeUp, pages }).toEqual({ madeUp: 1, pages: { held: 1, filled: 1 } });
    expect(coverage.extracted).toBe(coverage.held);
    expect(fields.filter((field) => coverage.fields[field].filled < coverage.fields[field].held)).toEqual([]);
    expect(fields.filter((field) => coverage.fields[field].held === 0)).toEqual(untold[provider] ?? []);
  },
);

test.each(counts)("each documented failure of $provider is what it means", ({ failures }) => {
  expect(failures.held).toBeGreaterThanOrEqual(6);
  expect(failures.filled).toBe(failures.held);
});

test("an answer that cannot be read is counted as such", () => {
  const broken = madeUpAnswers().map((answer) => ({ ...answer, body: "<!doctype html>" }));
  for (const { pages, coverage } of measureExtraction(broken)) {
    expect([pages, coverage.held, coverage.extracted]).toEqual([{ held: 1, filled: 0 }, 0, 0]);
  }
});
