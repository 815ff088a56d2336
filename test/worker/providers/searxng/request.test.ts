import { describe, expect, test } from "vitest";
import { languageCodeOf } from "../../../../shared/query/languages.ts";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import { pagesOf } from "../../../../shared/query/depth.ts";
import { googleOver } from "../../../harness/processes/google-engine.ts";
import type { Transport } from "../../../../worker/providers/provider.ts";
import { answerWith, row } from "../../../harness/fixtures/searxng-page.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080/search-of-mine/" }));

describe("request", () => {
  test("a search is a form for the engine google only, with language and country", () => {
    const request = searxng.request(query({ keyword: "pumps & hoses +50%", location: "Austria", language: "de" }), 3);
    expect(request).toMatchObject({ url: "http://searxng.example:8080/search-of-mine/search" });
    // SearXNG reports its failures in English, whatever the language of the search.
    expect(request.headers).toMatchObject({
      "content-type": "application/x-www-form-urlencoded",
      "accept-language": "en",
    });
    expect(sent(request.body)).toEqual({
      q: "pumps & hoses +50%",
      format: "json",
      engines: "google",
      language: "de-AT",
      pageno: "3",
      safesearch: "0",
      locale: "en",
    });
  });

  test.each([
    ["!!g pump", "g pump"],
    ["!! pump", "pump"],
    ["pump !bing :de", "pump bing de"],
    ["<1 pump <850 ?ddg !:<3", "1 pump 850 ddg 3"],
    ["site:pumps.example a:b a!b a<b what? 5!", "site:pumps.example a:b a!b a<b what? 5!"],
    ["pump\u00a0!bing\u3000:fr", "pump\u00a0bing\u3000fr"],
  ])("the keyword %j contains no command for SearXNG", (keyword, q) => {
    expect(sent(searxng.request(query({ keyword }), 1).body)).toMatchObject({ q, engines: "google" });
  });
});

describe("engines", () => {
  const open = (engines: string) =>
    openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example", SEARXNG_ENGINES: engines }));

  test.each([
    ["google", 10, "google"],
    ["google cse", 5, "google cse"],
    ["google cse, google", 10, "google cse,google"],
  ])("%s reaches depth 100 with %i calls", (engines, calls, sentAs) => {
    const provider = open(engines);
    expect(pagesOf(100, provider.organicPerPage)).toBe(calls);
    expect(sent(provider.request(query({ depth: 100 }), calls).body)).toMatchObject({
      engines: sentAs,
      pageno: String(calls),
    });
  });

  test.each([
    ["of Google's custom search", "google cse", []],
    ["of both engines while one is suspended", "google,google cse", [["google", "Suspended: CAPTCHA"]]],
  ])("depth 100 %s is five pages of 20 results", async (_, engines, suspended) => {
    const pages: string[] = [];
    const transport: Transport = async ({ body }) => {
      const page = sent(body)["pageno"] ?? "";
      pages.push(page);
      const results = Array.from({ length: 20 }, (__, at) => ({
        ...row({ engine: "google cse", engines: ["google cse"], url: `https://pumps.example/${page}/${at}` }),
        positions: [at + 1],
      }));
      const json = answerWith({ results, unresponsive_engines: suspended });
      return { status: 200, headers: {}, body: JSON.stringify(json) };
    };
    const answer = await googleOver({ ...open(engines), transport }).search(query({ depth: 100 }), 10_000);
    expect(pages.toSorted()).toEqual(["1", "2", "3", "4", "5"]);
    const urls = answer.ok ? answer.results.map(({ url }) => url) : [];
    expect([urls.length, urls[0], urls[99]]).toEqual([100, "https://pumps.example/1/0", "https://pumps.example/5/19"]);
  });

  test.each(["bing", "google,", "google cse;google"])("the list %j stops the start", (engines) => {
    expect(() => open(engines)).toThrow("expected a comma list of: google, google cse");
  });
});

describe("languages and countries", () => {
  test.each([
    ["en", "United States", "en-US"],
    ["pt-BR", "Brazil", "pt-BR"],
    ["nn", "Norway", "nb-NO"],
    ["Filipino", "Philippines", "fil-PH"],
    ["zh", "China", "zh-CN"],
    ["zh-Hant", "Hong Kong", "zh-HK"],
  ])("%s from %s is sent as %s", (language, location, tag) => {
    const requested = query({ language, location });
    expect(canSearch(requested)).toBe(true);
    expect(sent(searxng.request(requested, 1).body)["language"]).toBe(tag);
  });

  test.each([
    ["pt-BR", "Portugal", "the dialect of another country"],
    ["es-419", "Mexico", "the dialect of a continent"],
    ["zh-Hant", "China", "another script than the country's"],
    ["zh", "United States", "Chinese where SearXNG does not know which"],
    ["sr-Latn", "Serbia", "a script that Google does not distinguish"],
    ["haw", "United States", "a language that Google does not restrict pages to"],
  ])("%s from %s is left to another provider: %s", async (language, location) => {
    const requested = query({ language, location });
    expect(canSearch(requested)).toBe(false);
    expect(await googleOver(searxng).search(requested, 1_000)).toMatchObject({
      code: "query_rejected",
      details: { reason: "unsupported", field: "language" },
      trace: { calls: [] },
    });
  });
});

function sent(body: string): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(body));
}

function canSearch(requested: ReturnType<typeof query>): boolean {
  const country = sent(searxng.request(requested, 1).body)["language"]?.split("-")[1] ?? "";
  return searxng.can.language?.(languageCodeOf(requested.language), country) ?? true;
}
