import { afterEach, expect, test, vi } from "vitest";
import { type Door, localeOf, locationIn, pageOf } from "../../../api/doors/door.ts";
import { firecrawl } from "../../../api/doors/firecrawl.ts";
import { openwebui } from "../../../api/doors/openwebui.ts";
import { perplexity } from "../../../api/doors/perplexity.ts";
import { searxng } from "../../../api/doors/searxng.ts";
import { serper } from "../../../api/doors/serper.ts";
import { tavily } from "../../../api/doors/tavily.ts";
import { readQuery } from "../../../shared/query/query.ts";

const asking: { name: string; door: Door; sent: (q: unknown) => object }[] = [
  { name: "SearXNG", door: searxng, sent: (q) => ({ q, format: "json" }) },
  { name: "Tavily", door: tavily, sent: (query) => ({ query }) },
  { name: "Open WebUI", door: openwebui, sent: (query) => ({ query }) },
  { name: "Perplexity", door: perplexity, sent: (query) => ({ query }) },
  { name: "Perplexity, for a list of one", door: perplexity, sent: (query) => ({ query: [query] }) },
  { name: "Firecrawl", door: firecrawl, sent: (query) => ({ query }) },
  { name: "Serper", door: serper, sent: (q) => ({ q }) },
];

test.each(asking)("the door of $name searches for a text of several lines, whatever characters it has", (asked) => {
  const search = (q: string) => readQuery({ keyword: asked.door.fields.parse(asked.sent(q)).search.keyword }).keyword;
  expect(search("\u202egarden\tpump\r\n\r\n\0 review\u2069 \ud83d")).toBe("garden pump review \ufffd");
  expect(() => search(" \n\u2069")).toThrow("Expected at least one visible character.");
});

test.each(asking.filter(({ door }) => door !== perplexity))(
  "the door of $name says whether a query is missing or is no text",
  ({ door, sent }) => {
    const refusals = [undefined, ["a"]].map((q) => door.fields.safeParse(sent(q)).error?.issues[0]?.message);
    expect(refusals).toEqual(["This field is required.", "Expected a string."]);
  },
);

const locales = [
  { locale: "de", expected: { language: "de" } },
  { locale: "de-AT", expected: { language: "de-AT", location: "AT" } },
  { locale: "pt_BR", expected: { language: "pt_BR", location: "BR" } },
  { locale: "DE-AT", expected: { language: "DE-AT", location: "AT" } },
  { locale: "en-EU", expected: { language: "en" } },
  { locale: "zh-Hant-TW", expected: { language: "zh-Hant-TW", location: "TW" } },
  { locale: "German", expected: { language: "German" } },
  { locale: "en-XQ", expected: { language: "en" } },
  { locale: "at", expected: { location: "at" } },
  { locale: "xq", expected: { language: "xq" } },
  { locale: "all", expected: {} },
  { locale: "auto", expected: {} },
  { locale: undefined, expected: {} },
];

test.each(locales)(
  "the locale $locale chooses its language, and its country where it names one",
  ({ locale, expected }) => {
    expect(localeOf(locale)).toEqual(expected);
  },
);

test("where Google's pages have fewer than ten results, the pages of a door leave none out", () => {
  const fetched = (pages: number) => Array.from({ length: 8 * pages }, (_, place) => place);
  const shown = [1, 2, 3, 4, 5].map((number) => pageOf(number).of(fetched(number)));
  expect(shown.flat()).toEqual(fetched(5));
  expect(pageOf(2, 20).of(fetched(4))).toEqual(fetched(4).slice(16));
  expect(pageOf(2, 5).of(fetched(1))).toEqual([5, 6, 7]);
});

test.each([
  { count: 6, number: 2, size: 10, shown: 0 },
  { count: 7, number: 2, size: 10, shown: 4 },
  { count: 10, number: 3, size: 10, shown: 0 },
  { count: 12, number: 2, size: 20, shown: 0 },
  { count: 0, number: 1, size: 10, shown: 0 },
])("of $count results in all, page $number of $size has $shown", ({ count, number, size, shown }) => {
  const all = Array.from({ length: count }, (_, place) => place);
  expect(pageOf(number, size).of(all)).toEqual(all.slice(count - shown));
});

test.each([
  { location: "London", country: "uk", expected: "London, uk" },
  { location: "London, Ontario, Canada", country: "uk", expected: "London, Ontario, Canada" },
  { location: "Georgia", country: "us", expected: "Georgia, us" },
  { location: "CA", country: "us", expected: "California, us" },
  { location: "Georgia", country: "ge", expected: "Georgia" },
  { location: "Mexico", country: "us", expected: "Mexico" },
  { location: "Guadeloupe", country: "fr", expected: "Guadeloupe" },
  { location: "WA", country: "au", expected: "Western Australia, Australia" },
  { location: "SC", country: "Brazil", expected: "Santa Catarina, Brazil" },
  { location: "CA", country: "ca", expected: "CA" },
  { location: "TX", country: "mx", expected: "TX, mx" },
  { location: "Austin, TX", country: "mx", expected: "Austin, TX" },
  { location: undefined, country: "uk", expected: "uk" },
  { location: "London", country: undefined, expected: "London" },
])("$location with the country $country is $expected", ({ location, country, expected }) => {
  expect(locationIn(location, country)).toBe(expected);
});

const issuesOf = (fields: object) => firecrawl.fields.safeParse({ query: "a", ...fields }).error?.issues ?? [];

test("a door reads no more domains, sources or characters of a place than it accepts", () => {
  const many = (element: unknown) => Array.from({ length: 5_000 }, () => element);
  expect(issuesOf({ includeDomains: many("a.example") })).toMatchObject([{ message: "Expected at most 300 domains." }]);
  expect(issuesOf({ sources: many("news") }).length).toBeLessThan(5);
  expect(issuesOf({ sources: many("web") })).toHaveLength(1);
  expect(issuesOf({ sources: ["web", "web", "news"] })).toHaveLength(1);
  expect(issuesOf({ sources: ["web", { type: "web" }] })).toEqual([]);
  expect(locationIn("London".padEnd(256, "n"), "uk")).not.toContain("uk");
  expect(locationIn("London", "uk".padEnd(256, "k"))).not.toContain("London");
});

test("Firecrawl's door takes `scrapeOptions` that ask for nothing, and refuses formats of pages", () => {
  for (const scrapeOptions of [{}, { formats: [] }, null]) expect(issuesOf({ scrapeOptions })).toEqual([]);
  const message = "This door gives no contents of pages.";
  expect(issuesOf({ scrapeOptions: { formats: ["markdown"] } })).toMatchObject([{ message }]);
});

test("domains with which a query is too long are refused, and not the query", () => {
  const domains = Array.from({ length: 40 }, (_, at) => `shop-${at}.example`);
  const message = "Expected less: with the query it exceeds 700 characters.";
  expect(issuesOf({ includeDomains: domains })).toMatchObject([{ path: ["includeDomains"], message }]);
  expect(issuesOf({ excludeDomains: domains })).toMatchObject([{ path: ["excludeDomains"], message }]);
  expect(issuesOf({ includeDomains: domains.slice(0, 25) })).toEqual([]);
  expect(issuesOf({ query: "a".repeat(690), tbs: "qdr:d" })).toMatchObject([{ path: ["tbs"], message }]);
  expect(issuesOf({ query: "a".repeat(701), includeDomains: domains })).toEqual([]); // The search refuses the query.
});

test("a text in place of a list is refused once, however long it is", () => {
  expect(issuesOf({ sources: "the web" })).toMatchObject([
    { message: "This door searches the web only: expected web." },
  ]);
  expect(issuesOf({ includeDomains: "a".repeat(301) })).toMatchObject([{ message: "Expected a list of domains." }]);
});

test.each([
  { mode: undefined, keyword: "a site:b.example -site:c.example" },
  { mode: "restrict", keyword: "a site:b.example -site:c.example" },
  { mode: "filter", keyword: "a site:b.example -site:c.example" },
  { mode: "prefer", keyword: "a -site:c.example" },
  { mode: "boost", keyword: "a -site:c.example" },
])("at Tavily's door the mode $mode searches for `$keyword`", ({ mode, keyword }) => {
  const domains = { include_domains: ["b.example"], exclude_domains: ["c.example"], include_domains_mode: mode };
  expect(tavily.fields.parse({ query: "a", ...domains }).search).toMatchObject({ keyword });
});

afterEach(() => void vi.useRealTimers());

const ranges: { name: string; door: Door; sent: object; operators: string }[] = [
  { name: "SearXNG", door: searxng, sent: { time_range: "year" }, operators: " after:2027-03-02" },
  { name: "SearXNG", door: searxng, sent: { time_range: "None" }, operators: "" },
  { name: "SearXNG", door: searxng, sent: { time_range: "" }, operators: "" },
  { name: "Tavily", door: tavily, sent: { time_range: "w" }, operators: " after:2028-02-23" },
  { name: "Tavily", door: tavily, sent: { time_range: "week", start_date: null }, operators: " after:2028-02-23" },
  {
    name: "Tavily",
    door: tavily,
    sent: { time_range: "day", start_date: "2028-01-01", end_date: "2028-03-01" },
    operators: " after:2028-02-29 before:2028-03-01",
  },
  { name: "Perplexity", door: perplexity, sent: { search_recency_filter: "hour" }, operators: " after:2028-02-29" },
  {
    name: "Perplexity",
    door: perplexity,
    sent: { search_after_date_filter: "3/1/2025", search_before_date_filter: "03/05/2025" },
    operators: " after:2025-03-01 before:2025-03-05",
  },
  { name: "Firecrawl", door: firecrawl, sent: { tbs: "qdr:m" }, operators: " after:2028-01-31" },
  {
    name: "Firecrawl",
    door: firecrawl,
    sent: { tbs: "cdr:1,cd_min:12/31/2024,cd_max:1/31/2025" },
    operators: " after:2024-12-31 before:2025-01-31",
  },
  { name: "Serper", door: serper, sent: { tbs: "qdr:h" }, operators: " after:2028-02-29" },
  { name: "Serper", door: serper, sent: { tbs: "qdr:h25,sbd:1" }, operators: " after:2028-02-28" },
  { name: "Serper", door: serper, sent: { tbs: "qdr:y1000,cd_min:2/30/2026,li:1" }, operators: "" },
];

test.each(ranges)("the door of $name searches $sent by `$operators`", ({ door, sent, operators }) => {
  vi.setSystemTime("2028-03-01T00:00:00Z");
  expect(door.fields.parse({ q: "a", query: "a", format: "json", ...sent }).search.keyword).toBe(`a${operators}`);
});

test("a range of time is the same search all day long", () => {
  const searchAt = (time: string) => {
    vi.setSystemTime(time);
    return serper.fields.parse({ q: "a", tbs: "qdr:h" }).search;
  };
  expect(searchAt("2028-03-01T23:59:59Z")).toEqual(searchAt("2028-03-01T00:00:00Z"));
});

const unreadable: { door: Door; sent: Record<string, string>; expected: string }[] = [
  { door: searxng, sent: { time_range: "hour" }, expected: "Expected one of day, week, month, year." },
  { door: tavily, sent: { time_range: "decade" }, expected: "Expected one of day, week, month, year, d, w, m, y." },
  { door: tavily, sent: { start_date: "2026-02-29" }, expected: "Expected a date such as 2026-11-29." },
  { door: tavily, sent: { end_date: "11/29/2026" }, expected: "Expected a date such as 2026-11-29." },
  { door: perplexity, sent: { search_recency_filter: "d" }, expected: "Expected one of hour, day, week, month, year." },
  {
    door: perplexity,
    sent: { search_after_date_filter: "2026-11-29" },
    expected: "Expected a date such as 11/29/2026.",
  },
  { door: perplexity, sent: { search_before_date_filter: "13/1/26" }, expected: "Expected a date such as 11/29/2026." },
];

test.each(unreadable)("a range of time that is not readable is refused: $sent", ({ door, sent, expected }) => {
  const { error } = door.fields.safeParse({ q: "a", query: "a", format: "json", ...sent });
  expect(error?.issues).toMatchObject([{ path: Object.keys(sent), message: expected }]);
});

/** What each door searches for if a client limits the results to these domains. */
const limited: { name: string; door: Door; sent: (domains: string[]) => object }[] = [
  { name: "Tavily", door: tavily, sent: (include_domains) => ({ include_domains }) },
  { name: "Perplexity", door: perplexity, sent: (search_domain_filter) => ({ search_domain_filter }) },
  { name: "Firecrawl", door: firecrawl, sent: (includeDomains) => ({ includeDomains }) },
];

test.each(limited)("the door of $name takes domains as they are copied from a browser", ({ door, sent }) => {
  const searched = (...domains: string[]) => door.fields.safeParse({ query: "a", ...sent(domains) });
  const both = searched("https://b.example/", " HTTP://www.c.example/in ").data?.search.keyword;
  expect(both).toBe("a (site:b.example OR site:www.c.example/in)");
  for (const wrong of ["https://", "https://b.example:8080/", "ftp://b.example"])
    expect(searched(wrong).error?.issues).toMatchObject([{ message: "Expected a domain." }]);
});

const counted: { name: string; door: Door; field: string; depth: number }[] = [
  { name: "SearXNG", door: searxng, field: "pageno", depth: 20 },
  { name: "Tavily", door: tavily, field: "max_results", depth: 10 },
  { name: "Open WebUI", door: openwebui, field: "count", depth: 10 },
  { name: "Perplexity", door: perplexity, field: "max_results", depth: 10 },
  { name: "Firecrawl", door: firecrawl, field: "limit", depth: 10 },
  { name: "Serper", door: serper, field: "page", depth: 20 },
  { name: "Serper", door: serper, field: "num", depth: 10 },
];

test.each(counted)("the door of $name reads `$field` as a number or as text", ({ door, field, depth }) => {
  const searched = (value: unknown) =>
    door.fields.safeParse({ q: "a", query: "a", format: "json", ...(value !== undefined && { [field]: value }) });
  for (const two of [2, "2"]) expect(searched(two).data?.search.depth).toBe(depth);
  for (const none of [undefined, null, ""]) expect(searched(none).data?.search.depth).toBe(10);
  for (const wrong of ["two", "0", "1.5", "1e1", " 2", -1, true])
    expect(searched(wrong).error?.issues).toMatchObject([{ path: [field] }]);
});

test("Firecrawl's door returns ten results to a client that sends no `limit`", () => {
  const fetched = Array.from({ length: 20 }, (_, place) => ({ type: "organic", title: `${place}`, url: "" }));
  const { write } = firecrawl.fields.parse({ query: "a" });
  // Of an answer, only these fields are read.
  const written = write({ results: fetched } as never, { path: "/v2/search", durationMs: 1 });
  expect(written).toMatchObject({ data: { web: { length: 10 } } });
});

test("Perplexity's door takes a domain with a minus for an unwanted one, and refuses a minus without a domain", () => {
  const read = (...domains: unknown[]) =>
    perplexity.fields.safeParse({ query: "a", search_domain_filter: ["b.example", ...domains] });
  for (const unwanted of ["-c.example", "-https://c.example/"])
    expect(read(unwanted).data?.search.keyword).toBe("a site:b.example -site:c.example");
  const issue = { path: ["search_domain_filter", 1], message: "Expected a domain." };
  for (const wrong of ["-", "--", "", null]) expect(read(wrong).error?.issues).toMatchObject([issue]);
});

/** The search that Serper's door makes of a client's fields. */
const searched = (fields: object) =>
  readQuery(JSON.parse(JSON.stringify(serper.fields.parse({ q: "a", ...fields }).search)));

test("at Serper's door `hl` is a language alone, and a place without a country is in that of `gl`", () => {
  expect(searched({ hl: "pt-br" })).toMatchObject({ location: "United States" });
  expect(searched({ gl: "uk", hl: "en", location: "London" })).toMatchObject({ location: "London,United Kingdom" });
  expect(searched({ gl: "ca", location: "Ontario" })).toMatchObject({ location: "Ontario,Canada" });
  expect(searched({ gl: "ca", location: "London, CA" })).toMatchObject({ location: "London,Canada" });
  expect(searched({ gl: "de", location: "Georgetown" })).toMatchObject({ location: "Georgetown,Germany" });
});

test("Serper's door takes null for a field that was not sent", () => {
  expect(searched({ num: null, page: null, gl: null, hl: null, location: null })).toEqual(searched({}));
});

test.each([
  { first: "Ada", website: "https://ada.example/" },
  { first: "Wikipedia", website: undefined },
])("Serper's `website` is $website where the panel of Ada begins with a link to $first", ({ first, website }) => {
  const own = { title: first, url: "https://ada.example/", description: "" };
  const panel = {
    type: "knowledge_graph",
    title: "Ada",
    description: "",
    siteLinks: [own],
    richSnippet: { top: [], bottom: [] },
  };
  const answer = { results: [panel], query: { engine: "google" } };
  const { write } = serper.fields.parse({ q: "a" });
  // Of an answer, only these fields are read.
  const written = write(answer as never, { path: "/search", durationMs: 1 });
  expect(written).toMatchObject({ knowledgeGraph: { title: "Ada", website } });
});
