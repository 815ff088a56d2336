import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import type { Element } from "../../../../worker/providers/provider.ts";
import { cpuMsOf } from "../../../harness/assertions/cpu-time.ts";
import { element } from "../../../harness/assertions/element.ts";
import { elementsOf, readItems } from "../../../harness/fixtures/dataforseo-items.ts";
import { itemsOfEveryType, organic } from "../../../harness/fixtures/dataforseo-page.ts";
import { harmfulText, unexpectedValues } from "../hostile-answers.ts";

describe("a hostile answer of DataForSEO", () => {
  const unexpectedParts = [...unexpectedValues, harmfulText, true, 7, [], [[["x"]]], { items: {} }];
  const itemWithEveryField = { ...Object.assign({}, ...itemsOfEveryType), ...organic };
  const ofFewItems = ["booking_url", "date_from", "description_rows", "expanded_element", "link", "mentioned_in"];
  const fields = [...Object.keys(itemWithEveryField), ...ofFewItems, "extended_people_also_search"];

  test("with an unexpected value in an optional field loses only that field", () => {
    const types = ["organic", "paid", "knowledge_graph", "people_also_ask", "ai_overview", "local_pack", "new"];
    const optional = fields.filter((name) => name !== "type" && name !== "title" && name !== "url");
    // One assertion for all cases: thousands of them take seconds.
    const wrong = types.flatMap((type) =>
      optional.flatMap((field) =>
        unexpectedParts
          .filter((value) => !isOneSafeElement(elementsOf({ ...itemWithEveryField, type, [field]: value })))
          .map((value) => `${type}: ${field} = ${JSON.stringify(value)}`),
      ),
    );
    expect(wrong).toEqual([]);
  });

  test("with very long lists is read up to a limit", () => {
    const items = Array.from({ length: 10_000 }, (_, row) => ({ title: `Pump ${row}` }));
    const [jobs, pumps] = elementsOf(
      { type: "jobs", items },
      { type: "organic", title: "a", url: "https://a.example/", extended_snippet: "x·".repeat(1_000) },
    );
    expect([jobs?.siteLinks.length, pumps?.richSnippet.bottom.length]).toEqual([500, 50]);
  });

  test("with a long heading over many links does not multiply it", () => {
    const links = Array.from({ length: 400 }, (_, row) => ({ title: `Pump ${row}` }));
    const [found] = elementsOf({
      type: "new",
      items: [{ title: "x".repeat(1e5), description: "y".repeat(1e5), links }],
    });
    expect(found?.siteLinks.length).toBeGreaterThan(100);
    expect(JSON.stringify(found).length).toBeLessThan(2e5);
  });

  test("with very deep nesting or very long texts is read in linear time", () => {
    const deep = JSON.stringify({ type: "new" }).replace(
      "}",
      `,"items":${'[{"title":"a","items":'.repeat(5_000)}[]${"}]".repeat(5_000)}}`,
    );
    const long = JSON.stringify({
      type: "organic",
      title: "a",
      url: "https://a.example/",
      pre_snippet: `a${" ".repeat(1e6)}b`,
    });
    const markdown = ["![", "](", "[", "# "].map((part) => part.repeat(1e4));
    const overview = JSON.stringify({ type: "ai_overview", items: markdown.map((text) => ({ markdown: text })) });
    const lines = JSON.stringify({ type: "knowledge_graph", title: "a", description: "a\n".repeat(1e5) });
    const read = () => {
      for (const item of [deep, long, overview, lines]) expect(readItems(`[${item}]`)).toHaveLength(1);
    };
    expect(cpuMsOf(read)).toBeLessThan(5_000);
  });
});

/** One complete element without scripts, which reading with the schema leaves as it is. */
function isOneSafeElement(elements: readonly Element[]): boolean {
  const [found, ...more] = elements;
  const parsed = element.safeParse(found);
  const isComplete = parsed.success && isDeepStrictEqual(parsed.data, found);
  return more.length === 0 && isComplete && !/"url":"javascript|<script/.test(JSON.stringify(found));
}
