import { describe, expect, test } from "vitest";
import { queryFingerprint, readQuery } from "../../../shared/query/query.ts";
import { resultTypes } from "../../../shared/results.ts";
import { issuesOf, refusalOf } from "../../harness/fixtures/queries.ts";

describe("a request body", () => {
  test("a keyword alone is a complete search: all other fields have defaults, in the contract's order", () => {
    expect(JSON.stringify(readQuery({ keyword: "garden pump" }))).toBe(
      '{"keyword":"garden pump","engine":"google","location":"United States","language":"English","device":"desktop","depth":10}',
    );
  });

  test("every field is returned in canonical form, as it will be executed", () => {
    const query = readQuery({
      targetDomain: "https://www.Bücher.example/neu?x=1",
      depth: 35,
      device: "mobile",
      language: "Deutsch",
      location: " Austin , Texas, usa",
      engine: "google",
      keyword: "  garden   pump ",
    });
    expect(JSON.stringify(query)).toBe(
      '{"keyword":"garden   pump","engine":"google","location":"Austin,Texas,United States","language":"German","device":"mobile","depth":35,"targetDomain":"xn--bcher-kva.example"}',
    );
  });

  test("a returned query can be sent again and means the same search", () => {
    const query = readQuery({
      keyword: "pump",
      location: "Lyon, FR",
      language: "pt-br",
      targetDomain: "www.a.example",
      types: ["video", "organic"],
      maxAgeSeconds: 0,
      include: ["answeredBy", "fetchedAt"],
    });
    expect(readQuery(query)).toEqual(query);
    expect(queryFingerprint(readQuery(query))).toBe(queryFingerprint(query));
  });

  test.each([null, [], "pump", 7, undefined])("a body that is not an object is refused as a whole: %j", (body) => {
    expect(issuesOf(body)).toEqual([{ path: "", message: "Expected a JSON object as the body." }]);
  });

  test("a list of thousands is refused for its first elements, and the others are not read", () => {
    const issues = issuesOf({ keyword: "a", include: Array.from({ length: 5_000 }, () => "x") });
    expect(issues.map(({ path }) => path)).toEqual(["include.0", "include.1", "include.2"]);
  });

  test("a list with too many elements is refused with their bounds, duplicates included", () => {
    const message = "Expected a list of 1 to 2 of the fields fetchedAt, answeredBy.";
    const include = ["fetchedAt", "answeredBy", "fetchedAt"];
    expect(issuesOf({ keyword: "a", include })).toEqual([{ path: "include", message }]);
  });

  test("unknown fields are refused by name, `__proto__` and `constructor` included", () => {
    const body: unknown = JSON.parse('{"keyword":"a","__proto__":{"depth":5},"constructor":1,"Keyword":"b"}');
    expect(issuesOf(body).map(({ path }) => path)).toEqual(["__proto__", "constructor", "Keyword"]);
  });

  test("the name of an unknown field is shown without control characters, which Postgres would refuse", () => {
    expect(issuesOf({ keyword: "a", "b\u0000c": 1 })).toMatchObject([{ path: "b\ufffdc" }]);
  });

  test.each([
    ["keywrod", "keyword"],
    ["depht", "depth"],
    ["Keyword", "keyword"],
    ["target_domain", "targetDomain"],
    ["lang", "language"],
    ["type", "types"],
  ])("the unknown field %s is the first issue, and proposes %s", (unknown, meant) => {
    const [first, ...others] = issuesOf({ [unknown]: "b", depth: 0 });
    expect(first).toEqual({ path: unknown, message: expect.stringMatching(`Did you mean "${meant}"\\?$`) });
    expect(others).not.toEqual([]);
  });

  test.each(["callback", "costMils", "__proto__", "q".repeat(16_000), ""])("no field is proposed for %s", (unknown) => {
    expect(issuesOf({ keyword: "a", ...JSON.parse(`{${JSON.stringify(unknown)}:1}`) })).toEqual([
      { path: unknown.slice(0, 64), message: expect.not.stringContaining("Did you mean") },
    ]);
  });

  test("a refusal lists at most 20 issues, with at most 64 characters of a field name", () => {
    const fields = Object.fromEntries(Array.from({ length: 50 }, (_, row) => [`${"é".repeat(100)}${row}`, 1]));
    const issues = issuesOf({ keyword: "a", ...fields });
    expect(issues).toHaveLength(20);
    expect(issues[0]?.path).toBe("é".repeat(64));
  });

  test.each([
    ["keyword", 5],
    ["keyword", undefined],
    ["engine", null],
    ["location", ["Berlin, Germany"]],
    ["language", null],
    ["device", "tablet"],
    ["depth", "10"],
    ["depth", 0],
    ["depth", 101],
    ["depth", 1.5],
    ["targetDomain", null],
    ["types", "organic"],
    ["types", { 0: "organic", length: 1 }],
    ["types", null],
    ["maxAgeSeconds", -1],
    ["maxAgeSeconds", "60"],
    ["maxAgeSeconds", 7_776_001],
    ["include", "fetchedAt"],
    ["include", []],
    ["format", "Compact"],
    ["format", null],
  ])("no value is coerced: %s as %j is refused", (field, value) => {
    expect(issuesOf({ keyword: "pump", [field]: value })).toEqual([
      { path: field, message: expect.stringMatching(/\.$/) },
    ]);
  });
});

describe("texts", () => {
  test("a keyword has at most 700 code points", () => {
    expect(readQuery({ keyword: "😀".repeat(700) }).keyword).toBe("😀".repeat(700));
    expect(issuesOf({ keyword: "😀".repeat(701) })).toEqual([
      { path: "keyword", message: "Expected at most 700 characters." },
    ]);
    expect(issuesOf({ keyword: "a", location: `${"é".repeat(250)}, France` })).toHaveLength(1);
  });

  test.each([
    "a\u0000b",
    "a\nb",
    "a\u0085b",
    "\ud800",
    "a\u202eb",
    "a\u2066b",
    "",
    "   ",
    "\u200b\u2060\ufeff\u00ad",
    "\u3164\u2800",
  ])("%j is refused as a keyword", (keyword) => {
    expect(issuesOf({ keyword })).toHaveLength(1);
  });

  test.each(["שלום\u200f!", "a\u200eb", "می\u200cخواهم", "👩\u200d🚒", "--", "%00 & <b>"])(
    "%j is accepted as a keyword, unchanged",
    (keyword) => {
      expect(readQuery({ keyword }).keyword).toBe(keyword);
    },
  );
});

describe("types", () => {
  const typesOf = (typed: unknown) => readQuery({ keyword: "pump", types: typed }).types;

  test("are returned each once, in the order of the documentation", () => {
    expect(typesOf(["people_also_ask", "organic", "people_also_ask"])).toEqual(["organic", "people_also_ask"]);
    expect(typesOf(resultTypes.toReversed())).toEqual(resultTypes);
  });

  test("an unknown one is refused by its place in the list, with the types that there are", () => {
    const message = `Expected one of ${resultTypes.join(", ")}.`;
    const typed = ["organic", "news", 7, null, ["organic"], "__proto__"];
    expect(issuesOf({ keyword: "pump", types: typed })).toEqual(
      [1, 2, 3, 4, 5].map((index) => ({ path: `types.${index}`, message })),
    );
  });

  test.each([0, 16, 4_000])("a list of %d is refused, and so is a long one of unknown types", (length) => {
    const message = expect.stringMatching(/^Expected a list of 1 to 15 of the types organic, paid, /);
    expect(issuesOf({ keyword: "pump", types: Array(length).fill("organic") })).toEqual([{ path: "types", message }]);
    expect(issuesOf({ keyword: "pump", types: Array(length).fill("news") }).length).toBeLessThanOrEqual(20);
  });
});

describe("format", () => {
  test("the full one is the default, and a query does not name it", () => {
    expect(readQuery({ keyword: "pump", format: "full" })).toEqual(readQuery({ keyword: "pump" }));
    expect(readQuery({ keyword: "pump", format: "compact" }).format).toBe("compact");
  });

  test("the compact one takes no types, because it has organic results only", () => {
    const message = 'Expected no types in the format "compact", which has only organic results.';
    expect(issuesOf({ keyword: "pump", format: "compact", types: ["organic"] })).toEqual([{ path: "types", message }]);
  });
});

describe("engine", () => {
  test("an unknown engine is reported only if all other fields are valid", () => {
    expect(refusalOf({ keyword: "a", engine: "bing" })).toMatchObject({
      code: "not_implemented",
      details: { engine: "bing", supported: ["google"] },
    });
    expect(refusalOf({ keyword: "", engine: "bing" })).toMatchObject({ code: "bad_request" });
    expect(refusalOf({ keyword: "a", engine: "" })).toMatchObject({ code: "bad_request" });
    expect(refusalOf({ keyword: "a", engine: "x".repeat(99) })?.details["engine"]).toBe("x".repeat(64));
  });
});

describe("fingerprint", () => {
  test("equal searches have the same fingerprint, different searches different ones", () => {
    expect(fingerprint({})).toMatch(/^[0-9a-f]{64}$/);
    expect(fingerprint({ types: ["video", "organic", "video"] })).toBe(fingerprint({ types: ["organic", "video"] }));
    expect(fingerprint({ format: "full" })).toBe(fingerprint({}));
    expect(fingerprint({ language: "en", location: "USA", keyword: " pump " })).toBe(fingerprint({}));
    const others = [
      { keyword: "Pump" },
      { depth: 11 },
      { device: "mobile" },
      { language: "en-GB" },
      { targetDomain: "a.example" },
      { types: ["organic"] },
      { types: ["organic", "video"] },
      { format: "compact" },
    ];
    expect(new Set([{}, ...others].map(fingerprint)).size).toBe(others.length + 1);
  });

  test("the fingerprint of a query, which is stored with its key, stays the same from release to release", () => {
    expect(fingerprint({ targetDomain: "a.example" })).toBe(
      "9b500986c9c8606c6acfaade5d286961f0cac0d7c019518d8a24286bcfb98561",
    );
  });

  test("the order of a query's fields does not change its fingerprint", () => {
    const query = readQuery({ keyword: "pump", targetDomain: "a.example", types: ["organic"] });
    const reversed = Object.fromEntries(Object.entries(query).toReversed());
    expect(queryFingerprint({ ...query, ...reversed })).toBe(queryFingerprint(query));
  });
});

function fingerprint(body: object): string {
  return queryFingerprint(readQuery({ keyword: "pump", ...body }));
}
