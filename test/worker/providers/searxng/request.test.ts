import { describe, expect, test } from "vitest";
import { languageCodeOf } from "../../../../shared/query/languages.ts";
import { openSearxng } from "../../../../worker/providers/searxng/searxng.ts";
import { googleOver } from "../../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../../harness/fixtures/queries.ts";

const searxng = openSearxng(engineConfig({ SEARXNG_BASE_URL: "http://searxng.example:8080/search-of-mine/" }));

describe("request", () => {
  test("a search is a form for the engine google only, with language and country", () => {
    const request = searxng.request(query({ keyword: "pumps & hoses +50%", location: "Austria", language: "de" }), 3);
    expect(request).toMatchObject({ method: "POST", url: "http://searxng.example:8080/search-of-mine/search" });
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
