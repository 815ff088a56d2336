import { expect, test } from "vitest";
import { canHonour } from "../../../shared/capabilities/capabilities.ts";
import { openProvider } from "../../../worker/providers/registry.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { contractCases } from "./contract-cases.ts";

/** What each provider is sent for a query. Where the keyword and the secret are is part of the contract. */

type Name = keyof typeof contractCases;
const open = (name: Name, settings: Record<string, string> = {}) =>
  openProvider(name, engineConfig({ ...contractCases[name].settings, ...settings }));

/** The fields of a request, which are in its URL, its form or its JSON. */
function fieldsOf({ url, body }: { url: string; body: string }): Record<string, unknown> {
  if (/^[[{]/.test(body)) return [JSON.parse(body)].flat()[0];
  return Object.fromEntries(body === "" ? new URL(url).searchParams : new URLSearchParams(body));
}

const form = { "content-type": "application/x-www-form-urlencoded" };
const ofSerpapi = { engine: "google", q: "garden pump", device: "desktop" };

test.each<[Name, query: object, page: number, path: string, headers: object, fields: object]>([
  [
    "serper",
    { location: "UK", language: "pt-BR" },
    3,
    "/search",
    { "x-api-key": "a-secret-of-serper" },
    { q: "garden pump", gl: "gb", hl: "pt-br", num: 10, page: 3 },
  ],
  [
    "serpapi",
    { location: "UK", language: "pt-BR" },
    3,
    "/search.json",
    { accept: "application/json" },
    {
      ...ofSerpapi,
      gl: "gb",
      hl: "pt-br",
      location: "United Kingdom",
      start: "20",
      no_cache: "true",
      api_key: "a-secret-of-serpapi-0123456789",
    },
  ],
  [
    "searchapi",
    { location: "Lyon, France", language: "French" },
    3,
    "/api/v1/search",
    { authorization: "Bearer a-secret-of-searchapi" },
    { ...ofSerpapi, gl: "fr", hl: "fr", location: "Lyon,France", page: "3", link: "resolved" },
  ],
  [
    "dataforseo",
    { location: "UK", language: "German", depth: 25 },
    1,
    "/v3/serp/google/organic/live/advanced",
    { authorization: expect.stringMatching(/^Basic /) },
    {
      keyword: "garden pump",
      location_code: 2826,
      language_code: "de",
      device: "desktop",
      depth: 30,
      max_crawl_pages: 3,
      load_async_ai_overview: true,
    },
  ],
  [
    "searxng",
    { location: "Austria", language: "de" },
    3,
    "/search",
    { ...form, "accept-language": "en" }, // Its failures are in English, whatever the language of the search.
    {
      q: "garden pump",
      format: "json",
      engines: "google",
      language: "de-AT",
      pageno: "3",
      safesearch: "0",
      locale: "en",
    },
  ],
])("%s is sent the query %j, page %i, at %s in one request", (name, fields, page, path, headers, sent) => {
  const request = open(name).request(query(fields), page);
  expect(request.url.split("?")[0]).toBe(`https://provider.example/base${path}`);
  expect(request.headers).toMatchObject(headers);
  expect(fieldsOf(request)).toEqual(sent);
});

const lyon = { location: "Lyon, France" };

test.each<[Name, query: object, fields: object, settings?: Record<string, string>]>([
  ["serper", lyon, { gl: "fr", location: "Lyon,France" }],
  ["serpapi", { ...lyon, device: "mobile" }, { gl: "fr", location: "Lyon,France", device: "mobile", start: "0" }],
  ["serpapi", { location: "Cuba" }, { gl: "cu", location: undefined }], // Its list lacks Cuba.
  ["serpapi", { language: "en-US" }, { hl: "en" }],
  ["serpapi", { language: "zh-Hant" }, { hl: "zh-tw" }],
  ["serpapi", { language: "Filipino" }, { hl: "tl" }],
  ["serpapi", {}, { no_cache: undefined }, { SERPAPI_CACHE: "on" }],
  ["searchapi", { location: "Turkey" }, { location: "Turkiye" }],
  ["searchapi", { location: "Cuba" }, { gl: "cu", location: undefined }],
  ["dataforseo", { location: "Austin, Texas, USA" }, { location_name: "Austin,Texas,United States" }],
  ["dataforseo", { location: "Kosovo" }, { location_name: "Kosovo" }], // It has no ISO 3166-1 number.
  ["dataforseo", { language: "Norwegian" }, { language_code: "no" }],
  ["dataforseo", { language: "zh-Hant" }, { language_code: "zh-TW" }],
  ["dataforseo", { language: "pt-BR" }, { language_code: "pt-BR" }],
  ["dataforseo", { language: "es-419" }, { language_code: "es-419" }],
  ["dataforseo", { language: "en-GB" }, { language_code: "en" }],
  ["dataforseo", { language: "zh-HK" }, { language_code: "zh-TW" }],
  ["dataforseo", { language: "Filipino" }, { language_code: "fil" }],
  ["dataforseo", { language: "sr-Latn" }, { language_code: "sr-Latn" }],
  ["dataforseo", { device: "mobile", keyword: "100% c++" }, { device: "mobile", keyword: "100%25 c%2B%2B" }],
  ["dataforseo", {}, { load_async_ai_overview: undefined }, { DATAFORSEO_AI_OVERVIEW: "off" }],
  ["dataforseo", {}, { people_also_ask_click_depth: 3 }, { DATAFORSEO_QUESTION_CLICKS: "3" }],
  ["dataforseo", {}, { group_organic_results: false }, { DATAFORSEO_UNGROUP_RESULTS: "on" }],
  ["searxng", { language: "en" }, { language: "en-US" }],
  ["searxng", { language: "pt-BR", location: "Brazil" }, { language: "pt-BR" }],
  ["searxng", { language: "nn", location: "Norway" }, { language: "nb-NO" }],
  ["searxng", { language: "Filipino", location: "Philippines" }, { language: "fil-PH" }],
  ["searxng", { language: "zh", location: "China" }, { language: "zh-CN" }],
  ["searxng", { language: "zh-Hant", location: "Hong Kong" }, { language: "zh-HK" }],
  // Its commands are no part of a keyword.
  ["searxng", { keyword: "!!g pump" }, { q: "g pump", engines: "google" }],
  ["searxng", { keyword: "!! pump" }, { q: "pump" }],
  ["searxng", { keyword: "pump !bing :de" }, { q: "pump bing de", engines: "google" }],
  ["searxng", { keyword: "<1 pump <850 ?ddg !:<3" }, { q: "1 pump 850 ddg 3" }],
  ["searxng", { keyword: "site:a.example a:b a!b a<b what? 5!" }, { q: "site:a.example a:b a!b a<b what? 5!" }],
  ["searxng", { keyword: "pump\u00a0!bing\u3000:fr" }, { q: "pump\u00a0bing\u3000fr" }],
])("%s is sent for %j: %j", (name, fields, sent, settings) => {
  const provider = open(name, settings);
  const request = fieldsOf(provider.request(query(fields), 1));
  expect(canHonour(provider.can, query(fields))).toBe(true);
  expect(Object.fromEntries(Object.keys(sent).map((field) => [field, request[field]]))).toEqual(sent);
});

test.each<[Name, object]>([
  ["serpapi", { no_cache: "true", api_key: "a-secret-of-serpapi-0123456789" }],
  ["searchapi", { link: "resolved" }],
])("%s is asked for an AI Overview that a page announces only if the operator pays for it", (name, own) => {
  expect(open(name).overview).toBeUndefined();
  const request = open(name, { [`${name.toUpperCase()}_AI_OVERVIEW`]: "on" }).overview?.request("t/1=");
  expect(request?.body).toBe("");
  expect(request && fieldsOf(request)).toEqual({ engine: "google_ai_overview", page_token: "t/1=", ...own });
});
