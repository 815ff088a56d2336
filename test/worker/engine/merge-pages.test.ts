import { describe, expect, test } from "vitest";
import { mergePages, searchedKeywordOf } from "../../../worker/engine/google-engine.ts";
import { page, pageTitled } from "../providers/policies/fixtures.ts";

/** A page with one organic result for each of these ranks; undefined for one whose place the provider does not tell. */
function pageTelling(name: string, ranks: (number | undefined)[]) {
  const elements = ranks.flatMap((providerRank, index) =>
    pageTitled(`${name}${index}`).elements.map((element) =>
      providerRank === undefined ? element : { ...element, providerRank },
    ),
  );
  return page({ elements });
}

const ranksOf = (...pages: (number | undefined)[][]) =>
  mergePages(
    pages.map((ranks, index) => pageTelling(`p${index}-`, ranks)),
    100,
  ).map(({ rank }) => rank);

describe("rank", () => {
  test("is the one that the provider tells, with the gaps of elements that are not in the list", () => {
    expect(ranksOf([2, 3, 7])).toEqual([2, 3, 7]);
    expect(ranksOf([1, 4], [11, 12])).toEqual([1, 4, 11, 12]);
  });

  test("of an element whose place is not told follows the element before it", () => {
    expect(ranksOf([undefined, 3, undefined, 9])).toEqual([1, 3, 4, 9]);
  });

  test("of an element between two told ranks without room moves the next ones on, up to a gap", () => {
    expect(ranksOf([1, undefined, 2, 3, 7, 8])).toEqual([1, 2, 3, 4, 7, 8]);
    expect(ranksOf([2, 2, 3, 9])).toEqual([2, 3, 4, 9]);
  });

  test.each<[string, (number | undefined)[][]]>([
    [
      "are not told",
      [
        [undefined, undefined],
        [undefined, undefined],
      ],
    ],
    [
      "begin anew on each page",
      [
        [1, 2],
        [1, 2],
      ],
    ],
    ["fall", [[2, 1, 3, 4]]],
    ["are not positive", [[0, 1, 2, 3]]],
    ["are no whole numbers", [[1, 1.5, 2, 3]]],
    ["are not numbers", [[1, Number.NaN, 3, 4]]],
    ["are beyond any page", [[1, 2, 3, Number.MAX_SAFE_INTEGER]]],
  ])("numbers all elements in page order where the told ranks %s", (_, pages) => {
    expect(ranksOf(...pages)).toEqual([1, 2, 3, 4]);
  });

  test("stays that of the whole page where a repeated URL or a result beyond the depth is left out", () => {
    const pages = [pageTelling("same", [1, 2]), pageTelling("same", [3, 4, 5])];
    expect(mergePages(pages, 10).map(({ rank }) => rank)).toEqual([1, 2, 5]);
    expect(mergePages([pageTelling("deep", [2, 4, 6])], 2).map(({ rank }) => rank)).toEqual([2, 4]);
  });

  test("is not taken by a page that comes again with another srsltid or text fragment", () => {
    const at = (url: string) => page({ elements: pageTitled("shop").elements.map((element) => ({ ...element, url })) });
    const urlsOf = (...urls: string[]) => mergePages(urls.map(at), 10).map(({ url }) => url);
    const shop = "https://shop.example/p";
    for (const [first, again] of [
      [`${shop}?srsltid=A`, `${shop}?srsltid=B`],
      [`${shop}?id=1&srsltid=A`, `${shop}?id=1`],
      [`${shop}?srsltid=A&id=1#size`, `${shop}?id=1&srsltid=B#size`],
      [shop, `${shop}#:~:text=free%20delivery`],
      [`${shop}#size`, `${shop}#size:~:text=free%20delivery`],
    ] as const)
      expect(urlsOf(first, again)).toEqual([first]);
    const others = [
      `${shop}?srsltid=A`,
      `${shop}?id=1`,
      `${shop}?id=2`,
      `${shop}#a`,
      `${shop}?xsrsltid=1`,
      `${shop}?a=:~:text=b`,
    ];
    expect(urlsOf(...others)).toEqual(others);
  });

  test("is the only trace of a told rank: every result has the nine keys of the contract", () => {
    const [result] = mergePages([pageTelling("a", [3])], 10);
    expect(Object.keys(result ?? {})).toEqual([
      "type",
      "rank",
      "title",
      "url",
      "domain",
      "breadcrumb",
      "description",
      "richSnippet",
      "siteLinks",
    ]);
  });
});

describe("the searched keyword", () => {
  const searched = (searchedKeyword: string, keyword = "dighihills") =>
    searchedKeywordOf([page({ searchedKeyword }), page()], keyword);

  test("is what the engine searched, if that differs from the keyword", () => {
    expect(searched(" dighi hills ")).toBe("dighi hills");
    expect(searched("Dighihills")).toBe("Dighihills");
    expect(searchedKeywordOf([page(), page({ searchedKeyword: "dighi hills" })], "dighihills")).toBe("dighi hills");
  });

  test.each([
    ["dighihills", "dighihills"],
    [" dighihills ", "dighihills"],
    ["", "dighihills"],
    ["how to use tags", "how to use <b>tags</b>"],
  ])("is absent where %j was searched for %j", (told, keyword) => {
    expect(searched(told, keyword)).toBeUndefined();
  });

  test("is not longer than a keyword may be", () => {
    expect(searched("x".repeat(10_000))).toHaveLength(700);
  });
});
