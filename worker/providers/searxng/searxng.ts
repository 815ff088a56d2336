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
import { buildElement, splitLeadingDate } from "../build-element.ts";
import {
  type Element,
  type Failure,
  type FailureKind,
  failureOfHttpStatus,
  type Page,
  type PageAnswer,
  type Provider,
} from "../provider.ts";
import { readRows, toFields } from "../read-rows.ts";
import { parseJson } from "../sanitize.ts";

/** An instance waits 3 s for its engines by default. A loaded instance behind a proxy takes longer. */
const callTimeoutMs = 15_000;

/** The results of one page of each engine, in its source (searx/engines). */
const organicPerPage: Record<SearxngEngine, number> = { google: 10, "google cse": 20 };
/** Of several engines, the one with the smallest pages needs the most of them. */
const organicPerPageOf = (engines: readonly SearxngEngine[]) =>
  Math.min(...engines.map((engine) => organicPerPage[engine]));

/** Prefixes of a word that SearXNG reads as a command: `!bang`, `!!external`, `:language`, `<timeout`, formerly `?engine`. */
const commandPrefix = /(?<!\S)[!?:<]+/g;

const addedByInstance = /^(?:(?:plugin|answerer):.*)?$/;
const isoTime = /^(\d{4}-\d\d-\d\d)[T ].*$/;

/** A text, or a number as text; "" if it is missing, null or of another type. */
const text = z
  .union([z.string(), z.number().transform(String)])
  .nullish()
  .catch(undefined)
  .transform((value) => value ?? "");
const texts = z.array(text).catch([]);

/** The engines that returned a row. Rows that the instance adds itself have `plugin: …`, `answerer: …`, or no engine. */
const origin = { engine: text, engines: texts };

/** Only the engine is required. Every other field is left out if it has an unexpected form. */
const resultRow = z.object({
  ...origin,
  engine: z.string().min(1),
  title: text,
  url: text,
  content: text,
  positions: z.array(z.number()).catch([]),
  publishedDate: text,
});
type Row = z.infer<typeof resultRow>;

/** Google's engines return no answers and no infoboxes: of those, only the engine matters. Older SearXNG returns answers as bare strings. */
const origins = z.array(z.preprocess(toFields, z.object(origin)));

/** A part is absent if it is not a list of the expected form. An empty page needs all of them but suggestions. */
const resultsPage = z.object({
  results: z.array(z.unknown()).optional().catch(undefined),
  answers: origins.optional().catch(undefined),
  infoboxes: origins.optional().catch(undefined),
  /** The engines that failed, each with the reason. */
  unresponsive_engines: z.array(z.array(z.string()).min(1)).optional().catch(undefined),
  suggestions: texts,
});
type ResultsPage = z.infer<typeof resultsPage>;

type Origin = { engine: string; engines: string[] };
type EngineNames = ReadonlySet<string>;

/** @throws {MissingSettings} without SEARXNG_BASE_URL. */
export function openSearxng(config: EngineConfig): Provider {
  if (config.SEARXNG_BASE_URL === undefined) throw new MissingSettings("searxng", "SEARXNG_BASE_URL");
  const url = `${config.SEARXNG_BASE_URL}/search`;
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
    request: (query, pageNumber) => ({ url, headers, body: toForm(query, pageNumber, engines) }),
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
  const read = resultsPage.safeParse(parseJson(body));
  if (!read.success) return { failure: "unreadable" };
  const page = read.data;
  const { found: all, unreadableRows } = readRows(page.results ?? [], readRow);
  // An instance without these engines, or with locked categories, silently uses its default engines instead.
  if ([...all, ...(page.infoboxes ?? [])].some((part) => isFromOtherEngine(part, engines)))
    return { failure: "account_refused" };
  const ofEngines = all.filter((row) => engines.has(row.engine));
  const rows = resultElements(ofEngines);
  const failure = rows.length === 0 && failureOfEmptyPage(page, engines);
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
function failureOfEmptyPage(page: ResultsPage, engines: EngineNames): FailureKind | undefined {
  const { unresponsive_engines: failedEngines, answers, infoboxes } = page;
  if (!failedEngines || !answers || !infoboxes) return "unreadable";
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
function failureOfEngine(reason: string): FailureKind {
  if (/suspended/i.test(reason)) return "blocked";
  if (/timeout/i.test(reason)) return "timeout";
  if (/parsing error|unexpected crash/i.test(reason)) return "unreadable";
  return /HTTP|SSL|server API error|network error|proxy error/.test(reason) ? "unavailable" : "blocked";
}

/** Whether an engine returned it that was not asked. Plugins and answerers do not count. */
function isFromOtherEngine({ engine, engines }: Origin, asked: EngineNames): boolean {
  return [engine, ...engines].some((name) => !asked.has(name) && !addedByInstance.test(name));
}

/** One row; undefined if it cannot be read. */
function readRow(value: unknown): Row | undefined {
  const read = resultRow.safeParse(value).data;
  return read && hasContent(read) ? read : undefined;
}

/** Rows in the order of Google's page. SearXNG sorts by score, which moves up a URL that occurs twice. */
function resultElements(rows: readonly Row[]): Element[] {
  return rows
    .map((result, index) => ({ result, position: result.positions.reduce((a, b) => Math.min(a, b), Infinity), index }))
    .toSorted((a, b) => (a.position === b.position ? a.index - b.index : a.position - b.position))
    .map(({ result }) => rowElement(result));
}

/** SearXNG does not report where they are on the page. Google usually shows them below the results. */
function suggestionElements({ suggestions }: ResultsPage): Element[] {
  const siteLinks = suggestions.filter((word) => word.trim() !== "").map((title) => ({ title }));
  return siteLinks.length === 0 ? [] : [buildElement("related_searches", { siteLinks })];
}

/** A row that the instance adds itself may be without any text. */
function hasContent({ title, url, content, engine }: Row): boolean {
  return addedByInstance.test(engine) || `${title}${url}${content}`.trim() !== "";
}

function rowElement({ title, url, content, publishedDate }: Row): Element {
  const { date, rest } = splitLeadingDate(content);
  return buildElement("organic", {
    title,
    url,
    description: rest,
    top: [date || publishedDate.replace(isoTime, "$1")],
  });
}
