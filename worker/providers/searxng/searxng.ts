/**
 * SearXNG, Search API: POST {SEARXNG_BASE_URL}/search of an instance that the operator runs.
 * The instance needs `json` in its `search.formats`, no limiter for the workers, the engines of SEARXNG_ENGINES loaded, and
 * neither `categories` nor `language` locked.
 * Authentication: none. Cost: none per call.
 * Experimental: Google often blocks SearXNG's scraping. Desktop pages only, no cities, no total count, no breadcrumbs, and
 * besides organic results only related searches. SearXNG restricts pages to the language and country; other providers only
 * prefer them.
 * Wire format: the documentation of SearXNG's Search API, its source, and recorded answers.
 */
import { z } from "zod";
import { type EngineConfig, MissingSettings, type SearxngEngine } from "../../../shared/config.ts";
import { languageCodeOf } from "../../../shared/query/languages.ts";
import { countryOf } from "../../../shared/query/locations.ts";
import type { Query } from "../../../shared/query/query.ts";
import { baseLanguage, capabilities } from "../../../shared/capabilities/capabilities.ts";
import {
  type Failure,
  type FailureKind,
  failureOfHttpStatus,
  type Page,
  type PageAnswer,
  type Provider,
} from "../provider.ts";
import { readRows } from "../read-rows.ts";
import { parseJson } from "../sanitize.ts";
import {
  type EngineNames,
  isFromOtherEngine,
  type Origin,
  readRow,
  resultElements,
  type ResultsPage,
  resultsPageSchema,
  suggestionElements,
} from "./results-page.ts";

/** An instance waits 3 s for its engines by default. A loaded instance behind a proxy takes longer. */
const callTimeoutMs = 15_000;

/** The results of one page of each engine, in its source (searx/engines). */
const organicPerPage: Record<SearxngEngine, number> = { google: 10, "google cse": 20 };
/** Of several engines, the one with the smallest pages needs the most of them. */
const organicPerPageOf = (engines: readonly SearxngEngine[]) =>
  Math.min(...engines.map((engine) => organicPerPage[engine]));

/** Prefixes of a word that SearXNG reads as a command: `!bang`, `!!external`, `:language`, `<timeout`, formerly `?engine`. */
const commandPrefix = /(?<!\S)[!?:<]+/g;

/** The fields that show why a page is empty. All are required. */
const emptyPageSchema = z.object({
  unresponsive_engines: z.array(z.array(z.string()).min(1)),
  answers: z.array(z.unknown()),
  infoboxes: z.array(z.unknown()),
});

/** @throws {MissingSettings} without SEARXNG_BASE_URL. */
export function openSearxng(config: EngineConfig): Provider {
  if (config.SEARXNG_BASE_URL === undefined) throw new MissingSettings("searxng", "SEARXNG_BASE_URL");
  const url = `${config.SEARXNG_BASE_URL.replace(/\/+$/, "")}/search`;
  const engines = config.SEARXNG_ENGINES;
  const headers = {
    "content-type": "application/x-www-form-urlencoded",
    accept: "application/json",
    // As `locale` in the form, for an instance that locks it and follows the browser.
    "accept-language": "en",
  };
  return {
    name: "searxng",
    can: capabilities.searxng,
    callTimeoutMs,
    concurrentCallsMax: config.SEARXNG_CONCURRENCY,
    organicPerPage: organicPerPageOf(engines),
    request: (query, pageNumber) => ({ url, method: "POST", headers, body: toForm(query, pageNumber, engines) }),
    read: (answer) => readPage(answer, engines),
  };
}

/** A form and not a query string, so that keywords do not appear in the access logs of the instance. */
function toForm({ keyword, language, location }: Query, pageNumber: number, engines: readonly string[]): string {
  return new URLSearchParams({
    // Google ignores these prefixes, but SearXNG would change the engine, language or timeout.
    q: keyword.replace(commandPrefix, "").trim(),
    format: "json",
    engines: engines.join(","),
    language: `${baseLanguage(languageCodeOf(language))}-${countryOf(location)}`,
    pageno: String(pageNumber),
    safesearch: "0",
    // SearXNG reports in it why an engine failed: failureOfEngine knows the English texts.
    locale: "en",
  }).toString();
}

function readPage({ status, body }: PageAnswer, asked: readonly SearxngEngine[]): Page | Failure {
  const engines: EngineNames = new Set(asked);
  // A keyword of nothing but prefixes leaves no query.
  if (status === 400 && body.includes('"No query"')) return { failure: "query_refused" };
  // SearXNG documents 400 (a parameter), 403 (a format that is not enabled), 429 (its limiter) and 500.
  if (status !== 200) return { failure: failureOfHttpStatus(status) };
  const json = parseJson(body);
  const read = resultsPageSchema.safeParse(json);
  if (!read.success) return { failure: "unreadable" };
  const page = read.data;
  const { found: all, unreadableRows } = readRows(page.results ?? [], readRow);
  // An instance without these engines, or with locked categories, silently uses its default engines instead.
  if ([...all, ...page.infoboxes].some((part) => isFromOtherEngine(part, engines)))
    return { failure: "account_refused" };
  const ofEngines = all.filter((row) => engines.has(row.engine));
  const rows = resultElements(ofEngines);
  const failure = rows.length === 0 && failureOfEmptyPage(page, json, engines);
  if (failure) return { failure };
  const elements = [...rows, ...suggestionElements(page)];
  const isEmpty = page.results?.length === all.length;
  if (elements.length === 0 && !isEmpty) return { failure: "unreadable" };
  return {
    elements,
    // SearXNG removed the total in May 2026.
    totalResultsCount: 0,
    ...(unreadableRows === 0 ? {} : { unreadableRows }),
    // SearXNG does not report it. Google's pages have fewer than ten results if other elements take their space, but never none.
    hasMore: rows.length > 0,
    ...pageSizeOf(asked, ofEngines),
    // The operator's own machines and IP addresses have no price per call.
    costMicroUsd: 0,
  };
}

/**
 * `google cse` has only five pages. If `google` returns nothing, as while it is suspended, its smaller pages must not count: a sixth
 * page would ask `google` alone, and fail the search.
 */
function pageSizeOf(asked: readonly SearxngEngine[], rows: readonly Origin[]): Pick<Page, "organicPerPage"> {
  const answered = asked.filter((name) => rows.some(({ engine, engines }) => [engine, ...engines].includes(name)));
  const isPart = answered.length > 0 && answered.length < asked.length;
  return isPart ? { organicPerPage: organicPerPageOf(answered) } : {};
}

/** A page without rows is empty only if no engine failed: a blocked Google differs only in `unresponsive_engines`. */
function failureOfEmptyPage(
  { answers, infoboxes }: ResultsPage,
  json: unknown,
  engines: EngineNames,
): FailureKind | undefined {
  const read = emptyPageSchema.safeParse(json);
  if (!read.success) return "unreadable";
  const failedEngines = read.data.unresponsive_engines;
  const google = failedEngines.find(([engine = ""]) => engines.has(engine));
  if (google !== undefined) return failureOfEngine(google.slice(1).join(" "));
  if (failedEngines.length > 0) return "account_refused";
  // An instance answers some keywords (`random color`, `min 3 5`) itself, without calling any engine.
  return [...answers, ...infoboxes].every(({ engine }) => engines.has(engine)) ? undefined : "query_refused";
}

/**
 * After a block, SearXNG suspends the engine for minutes, an hour or a week, so a retry is useless. An instance that locks its
 * language reports failures in it. So an unknown text counts as a block, by far the most frequent failure.
 */
function failureOfEngine(text: string): FailureKind {
  if (/suspended/i.test(text)) return "blocked";
  if (/timeout/i.test(text)) return "timeout";
  if (/parsing error|unexpected crash/i.test(text)) return "unreadable";
  return /HTTP|SSL|server API error|network error|proxy error/.test(text) ? "unavailable" : "blocked";
}
