import { expect, test } from "vitest";
import { madeUpAnswers, toAnswer } from "../harness/fixtures/provider-answers.ts";
import { answerWith, row } from "../harness/fixtures/searxng-page.ts";
import { fields } from "../harness/expected-elements/expected-elements.ts";
import { measureExtraction } from "./answers.ts";

const counts = measureExtraction(madeUpAnswers());
/** Fields that a provider never returns. */
const missingFields: Record<string, string[]> = {
  serper: ["breadcrumb", "total"],
  searxng: ["breadcrumb", "total"],
};

test.each(counts)(
  "the adapter extracts every field of the made-up page of $provider, which has all fields",
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

test("a row of SearXNG that is not in its place, or whose date moved out of its text, is not lost", () => {
  const rows = [
    { content: "Mar 12, 2024 ... Ten pumps.", engine: "google cse", positions: [3] },
    { content: "1 abr 2013 … Una bomba.", publishedDate: "2013-04-01T00:00:00", engine: "google", positions: [1, 4] },
    { content: "3 days ago · A pump.", engine: "google", positions: [2] },
  ];
  const results = rows.map((given, at) => row({ ...given, engines: [given.engine], title: `Pump ${at}` }));
  const answer = toAnswer("searxng", JSON.stringify(answerWith({ results })));
  const counted = measureExtraction([{ ...answer, name: "", isRecorded: false }]);
  const found = counted.find(({ provider }) => provider === "searxng");
  expect(found?.lost).toEqual([]);
  expect(found?.coverage.fields.title).toEqual({ expected: 3, extracted: 3 });
});

test("an unreadable answer counts as not extracted", () => {
  const broken = madeUpAnswers().map((answer) => ({ ...answer, body: "<!doctype html>" }));
  for (const { pages, coverage } of measureExtraction(broken)) {
    expect([pages, coverage.expected, coverage.extracted]).toEqual([{ expected: 1, extracted: 0 }, 0, 0]);
  }
});

test("each text, number and link of an answer that the page lacks is reported with its place", () => {
  const organic = [
    {
      title: "Ten <b>pumps</b> &amp; hoses",
      link: "https://pumps.example/",
      size: { uk: { men: "XXL" } },
      sold: [[1_234]],
    },
    {
      title: "Wells",
      link: "https://wells.example/",
      picture: "https://pictures.example/1",
      rating: 4.5,
      ratingCount: 1_200,
    },
  ];
  const answer = madeUpAnswers().find(({ provider }) => provider === "serper");
  const body = JSON.stringify({ searchParameters: { q: "pumps of all sizes" }, organic, credits: 1 });
  const lost = measureExtraction([
    { ...answer, provider: "serper", name: "", isRecorded: false, expected: answer?.expected, body },
  ]).flatMap((count) => count.lost);
  expect(lost).toEqual([
    { path: "organic[].size.uk.men", value: "XXL", isLink: false },
    { path: "organic[].sold[][]", value: "1234", isLink: false },
    { path: "organic[].picture", value: "https://pictures.example/1", isLink: true },
  ]);
});
