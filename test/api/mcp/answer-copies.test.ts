import fc from "fast-check";
import { expect, test } from "vitest";
import { AnswerCopies, shortText } from "../../../api/mcp/answer-copies.ts";
import { type Result, type SiteLink, resultTypes } from "../../../shared/results.ts";

/** A text that may look like JSON, or like the end of a string in it. */
const text = fc.oneof(
  fc.constantFrom(
    "",
    "a",
    '","url":""',
    '{"title":"',
    '\\","domain":"',
    "\\",
    "\\\\",
    '"',
    "\u2028",
    "› ü 漢 😀",
    "\ud800",
  ),
  fc.string({ unit: fc.constantFrom('"', "\\", ",", ":", "{", "}", "[", "]", "url", "ü", "😀") }),
  fc.string({ unit: "binary" }),
);
const texts = fc.array(text, { maxLength: 3 });
const siteLink: fc.Arbitrary<SiteLink> = fc.record({ title: text, url: text, description: text });
const result: fc.Arbitrary<Result> = fc.record({
  type: fc.constantFrom(...resultTypes),
  rank: fc.nat(),
  title: text,
  url: text,
  domain: text,
  breadcrumb: text,
  description: text,
  richSnippet: fc.record({ top: texts, bottom: texts }),
  siteLinks: fc.array(siteLink, { maxLength: 3 }),
});
const compactResult = fc.record({ title: text, url: text, description: text });

/** The text of an answer, parsed: first the JSON string, then the JSON in it. */
const textOf = (answer: object): unknown =>
  JSON.parse(JSON.parse(shortText(Buffer.from(JSON.stringify(answer))).text.toString()));

const present = (fields: object) =>
  Object.fromEntries(
    Object.entries(fields).filter(
      ([, value]) => value !== "" && !(typeof value === "object" && Object.keys(value).length === 0),
    ),
  );

test("has every field of every result that is not empty, except domain and breadcrumb, whatever the texts are", () => {
  const results = fc.array(fc.oneof(result, compactResult), { maxLength: 4 });
  fc.assert(
    fc.property(results, text, (all, keyword) => {
      const short = all.map((one) => {
        if (!("siteLinks" in one)) return present(one);
        const { domain: _, breadcrumb: __, ...rest } = one;
        const siteLinks = one.siteLinks.map(present);
        return present({ ...rest, richSnippet: present(one.richSnippet), siteLinks });
      });
      const query = { keyword: `a${keyword}`, targetDomain: "example.com" };
      const answer = { requestId: "req_1", query, creditsCharged: 0, results: all };
      // As JSON, in which a lone surrogate is escaped.
      expect(JSON.stringify(textOf(answer))).toBe(JSON.stringify({ ...answer, results: short }));
    }),
    { numRuns: 2_000 },
  );
});

test("an answer whose texts consist of quotes and backslashes is shortened, however long it is", () => {
  const length = 3_000_000;
  const breadcrumb = `${"\\".repeat(length)}${'"'.repeat(length)}`;
  expect(textOf({ results: [{ rank: 1, breadcrumb, url: "u" }] })).toEqual({ results: [{ rank: 1, url: "u" }] });
});

test("of an answer above 100 KiB it has the first results and the mark, so it stays JSON and models can read it", () => {
  const results = Array.from({ length: 100 }, (_, row) => ({ rank: row + 1, title: '"'.repeat(5_000) }));
  const answer = { requestId: "req_1", creditsCharged: 5, results };
  expect(textOf(answer)).toEqual({ ...answer, truncated: true, results: results.slice(0, 10) });
});

test("an answer of 800 KiB makes a message below 1 MiB, whatever its texts are, so the official SDK for Python reads it", () => {
  const results = Array.from({ length: 100 }, (_, row) => ({ rank: row + 1, title: '"'.repeat(4_090) }));
  const body = Buffer.from(JSON.stringify({ requestId: "req_1", results }));
  expect(body.length).toBeGreaterThan(800 * 1024);
  const copies = new AnswerCopies(body);
  const split = copies.split(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, result: copies.result })));
  expect(Buffer.concat([...(split?.first ?? []), ...(split?.rest ?? [])]).length).toBeLessThan(1024 * 1024);
});
