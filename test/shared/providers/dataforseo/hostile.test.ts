import { describe, expect, test } from "vitest";
import { result } from "../../../../shared/results.ts";
import { elementsOf, itemWithEveryField, readItems } from "../../../harness/fixtures/dataforseo-items.ts";

const element = result.omit({ rank: true });

describe("a hostile answer", () => {
  const hostile = [
    null,
    7,
    -1,
    true,
    "x",
    "javascript:alert(1)",
    [],
    [null],
    [[["x"]]],
    {},
    { items: {} },
    "<script>x</script>",
  ];
  const parts = Object.keys(itemWithEveryField());

  test("whose decorations have unexpected forms costs those decorations, and nothing else", () => {
    for (const type of ["organic", "paid", "knowledge_graph", "people_also_ask", "ai_overview", "local_pack", "new"]) {
      for (const part of parts.filter((name) => name !== "type" && name !== "title" && name !== "url")) {
        for (const value of hostile) {
          const [found, ...more] = elementsOf({ ...itemWithEveryField(), type, [part]: value });
          expect(more).toEqual([]);
          expect(element.parse(found)).toEqual(found);
          expect(JSON.stringify(found)).not.toMatch(/"url":"javascript|<script/);
        }
      }
    }
  });

  test("does not get its markup or its addresses through", () => {
    const link = { title: "<img src=x onerror=alert(1)>Site", url: "data:text/html,x", description: "<b>bold</b>" };
    const item = { type: "organic", title: "<script>alert(1)</script>", url: "javascript:alert(1)", links: [link] };
    expect(elementsOf(item)).toMatchObject([
      { title: "alert(1)", url: "", domain: "", siteLinks: [{ title: "Site", url: "", description: "bold" }] },
    ]);
  });

  test("with lists without end is read as far as any page goes", () => {
    const items = Array.from({ length: 10_000 }, (_, row) => ({ title: `Pump ${row}` }));
    const [jobs, pumps] = elementsOf(
      { type: "jobs", items },
      { type: "organic", title: "a", url: "https://a.example/", extended_snippet: "x·".repeat(1_000) },
    );
    expect([jobs?.siteLinks.length, pumps?.richSnippet.bottom.length]).toEqual([500, 50]);
  });

  test("that is nested without end is read to a depth, and at once", () => {
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
    const startedAt = performance.now();
    for (const item of [deep, long]) expect(readItems(`[${item}]`)).toHaveLength(1);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
