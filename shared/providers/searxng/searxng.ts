import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf } from "../../query/locations.ts";
import type { Query } from "../../query/query.ts";
import type { Failure, FailureKind, Page, PageAnswer, Provider } from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import {
  surroundingElements,
  isFromOtherEngine,
  isFromGoogle,
  resultElements,
  resultsPageSchema,
  type ResultsPage,
} from "./results-page.ts";

/** An instance waits for its engines itself, 3 s unless set otherwise; a loaded one behind a proxy takes longer. */
const callTimeoutMs = 15_000;

/** The languages that Google restricts pages to, as SearXNG calls them. In any other it would search English, without a word. */
const languages = new Set(
  "af ar be bg ca cs da de el en eo es et fa fi fil fr he hi hr hu hy id is it ja ko lt lv nb nl pl pt ro ru sk sl sr sv sw th tr uk vi zh".split(
    " ",
  ),
);
/** Which Chinese is searched follows from the country, and SearXNG knows it of these. */
const scriptsOfChinese = new Map([
  ["CN", "Hans"],
  ["SG", "Hans"],
  ["HK", "Hant"],
  ["MO", "Hant"],
  ["TW", "Hant"],
]);

/** What SearXNG takes for a command in front of a word: `!bang`, `!!external`, `:language`, `<timeout`, formerly `?engine`. */
const command = /(?<!\S)[!?:<]+/g;

/** All that could speak against an empty page has to be there. */
const emptyPage = z.object({
  unresponsive_engines: z.array(z.array(z.string()).min(1)),
  answers: z.array(z.unknown()),
  infoboxes: z.array(z.unknown()),
});

/**
 * SearXNG: POST {SEARXNG_BASE_URL}/search of an instance of one's own, with `json` among its `search.formats`, no limiter for
 * the workers, the engine `google` loaded, and neither `categories` nor `language` locked. Links only, and experimental: Google
 * blocks its scraping time and again, and it restricts pages to the language and country where others only prefer them.
 * @throws {MissingSettings} without SEARXNG_BASE_URL.
 */
export function openSearxng(config: EngineConfig): Provider {
  if (config.SEARXNG_BASE_URL === undefined) throw new MissingSettings("searxng", "SEARXNG_BASE_URL");
  const url = `${config.SEARXNG_BASE_URL.replace(/\/+$/, "")}/search`;
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
    // Why an engine failed is told in words of this language.
    "accept-language": "en",
  };
  return {
    name: "searxng",
    can: { mobile: false, city: false, language: canSearchIn },
    callTimeoutMs,
    concurrentCallsMax: config.SEARXNG_CONCURRENCY,
    request: (query, pageNumber) => ({ url, method: "POST", headers, body: formOf(query, pageNumber) }),
    read: readSearxng,
  };
}

/** A form and not an address, so that what callers look for stays out of the logs of an instance. */
function formOf({ keyword, language, location }: Query, pageNumber: number): string {
  return new URLSearchParams({
    // Google makes nothing of these marks in front of a word, but here they would change engine, language or time-out.
    q: keyword.replace(command, "").trim(),
    format: "json",
    engines: "google",
    language: `${baseLanguage(languageCodeOf(language))}-${countryOf(location)}`,
    pageno: String(pageNumber),
    safesearch: "0",
  }).toString();
}

/** There is one parameter for both, `de-AT`: the dialect of another country, or a script of one's own, has no place in it. */
function canSearchIn(languageCode: string, countryCode: string): boolean {
  const { script, region } = new Intl.Locale(languageCode);
  const base = baseLanguage(languageCode);
  if (!languages.has(base) || (region !== undefined && region !== countryCode)) return false;
  if (base !== "zh") return script === undefined;
  return scriptsOfChinese.get(countryCode) === (script ?? new Intl.Locale(languageCode).maximize().script);
}

/** To SearXNG all Norwegian is Bokmål, and to Google it is all one. */
function baseLanguage(languageCode: string): string {
  const { language } = new Intl.Locale(languageCode);
  return language === "no" || language === "nn" ? "nb" : language;
}

function readSearxng({ status, body }: PageAnswer): Page | Failure {
  if (status !== 200) return { failure: failureOfStatus(status) };
  const json = parseJson(body);
  const read = resultsPageSchema.safeParse(json);
  if (!read.success) return { failure: "unreadable" };
  const page = read.data;
  // An instance without this engine, or with locked categories, asks all its usual engines in Google's place.
  if (page.results.some(isFromOtherEngine) || page.infoboxes.some(isFromOtherEngine))
    return { failure: "account_refused" };
  const rows = resultElements(page.results.filter(isFromGoogle));
  const failure = rows.length === 0 && failureOfEmptyPage(page, json);
  if (failure) return { failure };
  const { above, below } = surroundingElements(page);
  return {
    elements: [...above, ...rows, ...below],
    // They gave it up in May 2026.
    totalResultsCount: 0,
    // They do not tell. Google's pages have fewer than ten rows where other elements need the room, but never none.
    hasMore: rows.length > 0,
    // Of one's own machines and addresses; what those cost is no price per call.
    costMicroUsd: 0,
  };
}

/** They publish 400 for a parameter, 403 for a format that is not enabled, 429 of the limiter and 500. */
function failureOfStatus(status: number): FailureKind {
  if (status === 401 || status === 402 || status === 403) return "account_refused";
  if (status === 429) return "rate_limited";
  if (status === 408 || status >= 500) return "unavailable";
  return status >= 400 ? "request_refused" : "unreadable";
}

/** A page without rows counts as empty only where nothing speaks against it: a blocked Google looks the same but for one list. */
function failureOfEmptyPage({ answers, infoboxes }: ResultsPage, json: unknown): FailureKind | undefined {
  const told = emptyPage.safeParse(json);
  if (!told.success) return "unreadable";
  const silent = told.data.unresponsive_engines;
  const google = silent.find(([engine]) => engine === "google");
  if (google !== undefined) return failureOfEngine(google.slice(1).join(" "));
  if (silent.length > 0) return "account_refused";
  // To some keywords (`random color`, `min 3 5`) an instance has an answer of its own, and then asks nobody.
  return [...answers, ...infoboxes].every(isFromGoogle) ? undefined : "query_refused";
}

/**
 * Each of the blocks suspends the engine: for minutes, an hour or a week it is not asked at all, so a second call wins nothing.
 * An instance that insists on another language than English leaves every text a mere "unavailable".
 */
function failureOfEngine(text: string): FailureKind {
  if (/suspended|captcha|access denied|too many requests/i.test(text)) return "blocked";
  if (/timeout/i.test(text)) return "timeout";
  return /parsing error|unexpected crash/i.test(text) ? "unreadable" : "unavailable";
}
