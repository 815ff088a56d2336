import { existsSync, readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { result } from "../../../shared/results.ts";
import type { Element } from "../../../worker/engine/provider.ts";
import { dataforseo, elementsOf, everyPart, readItems } from "../../harness/dataforseo-items.ts";

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
  const parts = Object.keys(everyPart());

  test("whose decorations have unexpected forms costs those decorations, and nothing else", () => {
    for (const type of ["organic", "paid", "knowledge_graph", "people_also_ask", "ai_overview", "local_pack", "new"]) {
      for (const part of parts.filter((name) => name !== "type" && name !== "title" && name !== "url")) {
        for (const value of hostile) {
          const [found, ...more] = elementsOf({ ...everyPart(), type, [part]: value });
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

const recorded = new URL("../../../../shared/fixtures/dataforseo/", import.meta.url);
const recordedNames = existsSync(recorded) ? readdirSync(recorded).filter((name) => name.startsWith("organic_")) : [];
const recordedItem = z.object({ type: z.string(), url: z.string().nullish(), breadcrumb: z.string().nullish() });
const recordedPage = z.object({
  tasks: z.tuple([z.object({ result: z.tuple([z.object({ items: z.array(recordedItem) })]) })]),
});

test.skipIf(recordedNames.length === 0)(
  "every item of the recorded answers comes out, and what creates tasks is no page (skipped where ../shared/fixtures/dataforseo does not lie beside the project)",
  () => {
    const counts = recordedNames.map((name) => {
      const body = readFileSync(new URL(name, recorded), "utf8");
      const page = dataforseo.read({ status: 200, headers: {}, body });
      if ("failure" in page) return `${name}: ${page.failure}`;
      const { items } = recordedPage.parse(JSON.parse(body)).tasks[0].result[0];
      expect(z.array(element).parse(page.elements)).toEqual(page.elements);
      const isListing = ({ type }: { type: string }) => type === "organic" || type === "paid";
      expect(page.elements.filter(isListing).map(({ url, breadcrumb }) => ({ url, breadcrumb }))).toEqual(
        items.filter(isListing).map(({ url, breadcrumb }) => ({ url, breadcrumb })),
      );
      const isBare = ({ title, siteLinks, description }: Element) =>
        title === "" && description === "" && siteLinks.length === 0;
      expect(page.elements.filter(isBare)).toEqual([]);
      return `${name}: ${items.length} in, ${page.elements.length} out, of ${page.totalResultsCount}`;
    });
    expect(counts).toEqual([
      "organic_live_regular.json: 10 in, 10 out, of 85600000",
      "organic_task_get_advanced.json: 47 in, 47 out, of 85600000",
      "organic_task_post.json: unreadable",
    ]);
  },
);
