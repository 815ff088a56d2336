import { expect, test } from "vitest";
import { answerWith, row } from "../harness/fixtures/searxng-page.ts";
import { measureExtraction } from "./answers.ts";

test("a row of SearXNG that is not in its place, or whose date moved out of its text, is not lost", () => {
  const rows = [
    { content: "Mar 12, 2024 ... Ten pumps.", engine: "google cse", positions: [3] },
    { content: "1 abr 2013 … Una bomba.", publishedDate: "2013-04-01T00:00:00", engine: "google", positions: [1, 4] },
    { content: "3 days ago · A pump.", engine: "google", positions: [2] },
  ];
  const results = rows.map((given, at) => row({ ...given, engines: [given.engine], title: `Pump ${at}` }));
  const answer = { provider: "searxng" as const, name: "", isRecorded: false };
  const counted = measureExtraction([{ ...answer, body: JSON.stringify(answerWith({ results })) }]);
  expect(counted.find(({ provider }) => provider === "searxng")).toMatchObject({ pages: 1, lost: [] });
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
  const body = JSON.stringify({ searchParameters: { q: "pumps of all sizes" }, organic, credits: 1 });
  const lost = measureExtraction([{ provider: "serper", name: "", isRecorded: false, body }]).flatMap(
    (count) => count.lost,
  );
  expect(lost).toEqual([
    { path: "organic[].size.uk.men", value: "XXL", isLink: false },
    { path: "organic[].sold[][]", value: "1234", isLink: false },
    { path: "organic[].picture", value: "https://pictures.example/1", isLink: true },
  ]);
});
