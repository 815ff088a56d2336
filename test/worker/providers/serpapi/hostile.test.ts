import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Element } from "../../../../worker/providers/provider.ts";
import { Row } from "../../../../worker/providers/serpapi/fields.ts";
import { cpuMsOf } from "../../../harness/assertions/cpu-time.ts";
import { element } from "../../../harness/assertions/element.ts";
import { partsWithEveryElement, pageOf, row, serpapi } from "../../../harness/fixtures/serpapi-page.ts";
import { harmfulText, unexpectedValues } from "../hostile-answers.ts";

describe("a hostile answer of SerpApi", () => {
  const unexpectedParts = [
    ...unexpectedValues,
    harmfulText,
    7,
    true,
    [],
    [{}],
    { expanded: 7 },
    { top: { extensions: "a" } },
    { top: 7, bottom: [] },
    JSON.parse('{"__proto__":{"title":[]}}'),
  ];

  test("with an unexpected value in an optional field loses only that field", () => {
    const fields =
      "displayed_link snippet date author price rating reviews extensions rich_snippet rich_snippet_table rich_snippet_list sitelinks redirect_link thumbnail";
    const wrong = fields.split(" ").flatMap((field) =>
      unexpectedParts
        .filter((value) => {
          const { elements } = pageOf({ organic_results: [{ ...row, [field]: value }] });
          const [found] = elements;
          const isKept = found?.type === "organic" && found.title === row.title && found.url === row.link;
          return elements.length !== 1 || !isKept || isUnsafe(elements);
        })
        .map((value) => `${field} = ${JSON.stringify(value)}`),
    );
    expect(wrong).toEqual([]);
  });

  test("with an unexpected value in another part is still a page of complete elements", () => {
    const wrong = Object.entries(partsWithEveryElement).flatMap(([name, value]) =>
      unexpectedParts
        .flatMap((unexpected) => brokenVariants(value, unexpected))
        .filter((part) => {
          const { elements } = pageOf({ organic_results: [row], [name]: part });
          const isEachComplete = elements.every((found) => element.safeParse(found).success);
          return (
            !isEachComplete || elements.filter(({ type }) => type === "organic").length !== 1 || isUnsafe(elements)
          );
        })
        .map((part) => `${name} = ${JSON.stringify(part)}`),
    );
    expect(wrong).toEqual([]);
  });

  test("with very deep nesting is read up to a limit", () => {
    const levels = 5_000;
    const nested = `${'{"title":"a","text_blocks":[{"list":['.repeat(levels)}${"]}]}".repeat(levels)}`;
    for (const part of ["ai_overview", "answer_box", "knowledge_graph", "new_results"]) {
      const body = `{"search_metadata":{"status":"Success"},"organic_results":[${JSON.stringify(row)}],"${part}":${nested}}`;
      const page = serpapi.read({ status: 200, headers: {}, body });
      expect(page).toHaveProperty("elements.length", 2);
      expect(JSON.stringify(page).length).toBeLessThan(5_000);
    }
  });

  const longList = (member: string) => `[${`${member},`.repeat(10_000)}${member}]`;
  test.each([
    ["with too many results", `"organic_results":${longList(JSON.stringify(row))}`],
    ["with too many parts", Array.from({ length: 10_000 }, (_, index) => `"part_${index}":{"a":1}`).join()],
  ])("%s is unreadable, in linear time", (_, part) => {
    const body = `{"search_metadata":{"status":"Success"},"organic_results":[${JSON.stringify(row)}],${part}}`;
    const read = () =>
      expect(serpapi.read({ status: 200, headers: {}, body })).toMatchObject({ failure: "unreadable" });
    expect(cpuMsOf(read)).toBeLessThan(5_000);
  });

  test.each(["related_questions", "new_results", "ads", "immersive_products"])(
    "with a very long list in %s is still a page, in linear time",
    (name) => {
      const read = () => {
        for (const member of ["{}", '[{"title":"a"}]', '{"list":[{}]}']) {
          const body = `{"search_metadata":{"status":"Success"},"organic_results":[${JSON.stringify(row)}],"${name}":${longList(member)}}`;
          expect(serpapi.read({ status: 200, headers: {}, body })).toHaveProperty("hasMore", true);
        }
      };
      expect(cpuMsOf(read)).toBeLessThan(5_000);
    },
  );

  test("with megabytes of names leaves none of them in memory", () => {
    setFlagsFromString("--expose-gc");
    const collectGarbage: () => void = runInNewContext("gc");
    const heldBytes = () => {
      // What the first one finds may be freed by the second one only.
      collectGarbage();
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = heldBytes();
    for (let megabytes = 1; megabytes <= 50; megabytes += 1)
      new Row(JSON.parse(`{"${`${megabytes}`.padEnd(1_000_000, "x")}": "a"}`)).rest();
    expect(heldBytes() - before).toBeLessThan(25_000_000);
  });
});

/** The part replaced by an unexpected value, or with that value in each field of the object or of the first member of the list. */
function brokenVariants(part: unknown, unexpected: unknown): unknown[] {
  const isList = Array.isArray(part);
  const fields: object = Object(isList ? part[0] : part);
  const withOneBroken = Object.keys(fields).map((field) => ({ ...fields, [field]: unexpected }));
  return [unexpected, [unexpected], ...(isList ? withOneBroken.map((member) => [member]) : withOneBroken)];
}

function isUnsafe(elements: readonly Element[]): boolean {
  return /<script|"url":"javascript/.test(JSON.stringify(elements));
}
