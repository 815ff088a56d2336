/**
 * SerpApi, Google Search API (engine `google`): GET {SERPAPI_BASE_URL}/search.json with all parameters in the query string.
 * Authentication: by SerpApi's design, the key is the parameter `api_key`. The URL of a request is therefore a secret and is
 * sent only to SerpApi.
 * Cost: each successful search is one search of the plan; answers do not state it. So is an AI Overview (SERPAPI_AI_OVERVIEW).
 * One page of ten organic results per call. The positions of other elements are not reported.
 * Wire format: SerpApi's documentation of the Google Search API, and recorded answers.
 */
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../../shared/config.ts";
import { organicPerPage } from "../../../shared/query/depth.ts";
import { languageCodeOf } from "../../../shared/query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../../shared/query/locations.ts";
import {
  balanceSchema,
  type Failure,
  failureOfHttpStatus,
  googleLocationName,
  type PageAnswer,
  type PageRequest,
  type Provider,
  type ProviderQuery,
  readingJson,
  toAccount,
  withCost,
} from "../provider.ts";
import { capabilities } from "../../../shared/capabilities/capabilities.ts";
import { googleLanguageCode, googleLanguages } from "../../../shared/capabilities/google-languages.ts";
import { prices } from "../prices.ts";
import { parseList } from "../sanitize.ts";
import { toPage } from "./page.ts";
import type { LocationRow } from "../../locations/listed-location.ts";
import { toLocationRows } from "../read-rows.ts";

/** SerpApi answers in 1 to 4 s. By this time it has usually given up on a search itself. */
const callTimeoutMs = 20_000;
/** SerpApi does not charge for an answer from its one-hour cache, but does not mark it either. */
const costPerSearchMicroUsd = prices.serpapi.firstPageMicroUsd;

/**
 * Countries and territories that Google's list of locations lacks, which SerpApi's list is made from: those that its ads cannot
 * be targeted to, by law or for lack of people.
 */
const unlistedCountries: ReadonlySet<string> = new Set(["AX", "BV", "CU", "EH", "IO", "IR", "KP", "SJ", "SY"]);

const accountSchema = z
  .object({ total_searches_left: balanceSchema })
  .transform(({ total_searches_left: left }) => toAccount(left, "searches left"));
const errorSchema = z.object({ error: z.string() });
const searchStatusSchema = z.object({ search_metadata: z.object({ status: z.string() }) });

/** @throws {MissingSettings} without SERPAPI_API_KEY. */
export function openSerpapi(config: EngineConfig): Provider {
  const key = config.SERPAPI_API_KEY;
  if (key === undefined) throw new MissingSettings("serpapi", "SERPAPI_API_KEY");
  const base = config.SERPAPI_BASE_URL;
  const headers = { accept: "application/json" };
  /** The key, and what the operator wants of every search. */
  const always = { ...(config.SERPAPI_CACHE === "off" && { no_cache: "true" }), api_key: key };
  // An answer may repeat the key, for example in a link to SerpApi. Callers must not find it in their results.
  const read = (answer: PageAnswer) => readPage({ ...answer, body: answer.body.replaceAll(key, "") });
  const search = (parameters: Record<string, string>): PageRequest => ({
    url: `${base}/search.json?${new URLSearchParams({ ...parameters, ...always }).toString()}`,
    headers,
    body: "",
  });
  return {
    name: "serpapi",
    can: capabilities.serpapi,
    callTimeoutMs,
    concurrentCallsMax: config.SERPAPI_CONCURRENCY ?? "adaptive",
    request: (query, pageNumber) =>
      search({ ...toParameters(query), start: String((pageNumber - 1) * organicPerPage) }),
    read,
    ...(config.SERPAPI_AI_OVERVIEW === "on" && {
      overview: { request: (token) => search({ engine: "google_ai_overview", page_token: token }), read },
    }),
    // Free. The answer repeats the key; only a number is read from it.
    account: { request: { url: `${base}/account.json?api_key=${key}`, headers, body: "" }, read: readAccount },
    // Free, and needs no key.
    locations: { request: { url: `${base}/locations.json`, headers, body: "" }, read: readLocations },
  };
}

/** The query as SerpApi and SearchApi read it. */
export function toParameters(query: ProviderQuery): Record<string, string> {
  const { keyword, location, language, device } = query;
  // Without a location SerpApi may search from where its own server is. It refuses a country that its list lacks.
  const isUnlisted = !isFinerThanCountry(location) && unlistedCountries.has(countryOf(location));
  return {
    engine: "google",
    q: keyword,
    // Sent with every location: otherwise the country of SerpApi's own servers would outweigh the location.
    gl: countryOf(location).toLowerCase(),
    hl: googleLanguageCode(languageCodeOf(language), googleLanguages).toLowerCase(),
    ...(!isUnlisted && { location: googleLocationName(query) }),
    device,
  };
}

const readAccount = readingJson((json) => accountSchema.safeParse(json).data, failureOfAnswer);
const readPage = readingJson((json) => toPage(json, costPerSearchMicroUsd), failureOfAnswer);

/** Newer and older texts for an empty account, and for a wrong key. */
const accountRefusals = /run out of searches|searches for the month are exhausted|credit is too low|invalid api key/i;

/**
 * Only the message distinguishes an empty account from too many searches per hour: both are a 429. In older answers, an empty
 * account is a 200.
 */
function failureOfAnswer(status: number, json: unknown): Failure {
  const message = errorSchema.safeParse(json).data?.error ?? "";
  if (accountRefusals.test(message)) return { failure: "account_refused" };
  if (status === 400) return failureOfParameter(message);
  return failureOfSearch(status, json, costPerSearchMicroUsd);
}

/** ``Unsupported `Atlantis` location - location parameter.``: another provider may support the location, country or language. */
function failureOfParameter(message: string): Failure {
  const parameter = /^unsupported\b.*\b(location|gl|hl) parameter/is.exec(message)?.[1]?.toLowerCase();
  if (parameter === undefined) return { failure: "request_refused" };
  return { failure: "query_refused", field: parameter === "hl" ? "language" : "location" };
}

/**
 * A search that succeeded is charged for, even if the adapter cannot read the answer. A search that failed is a 503, as if the
 * whole service had failed; only its own state says that others succeed.
 */
export function failureOfSearch(httpStatus: number, json: unknown, costMicroUsd: number): Failure {
  const status = searchStatusSchema.safeParse(json).data?.search_metadata.status;
  if (status === "Error" && (httpStatus === 200 || httpStatus === 503))
    return { failure: "unavailable", overloaded: false };
  if (httpStatus !== 200) return { failure: failureOfHttpStatus(httpStatus) };
  if (status === "Queued" || status === "Processing") return { failure: "timeout" };
  return withCost({ failure: "unreadable" }, status === "Success" ? costMicroUsd : 0);
}

/** GET /locations.json without a filter, the whole list as an array (serpapi.com/locations-api). */
function readLocations({ status, body }: PageAnswer): LocationRow[] | Failure {
  if (status !== 200) return { failure: failureOfHttpStatus(status) };
  return toLocationRows(parseList(body), ["canonical_name", "country_code", "target_type"]);
}
