/**
 * SerpApi, Google Search API (engine `google`): GET {SERPAPI_BASE_URL}/search.json with all parameters in the query string.
 * Authentication: by SerpApi's design, the key is the parameter `api_key`. The URL of a request is therefore a secret and is
 * sent only to SerpApi.
 * Cost: each successful search is one search of the plan; answers do not state it.
 * One page of ten organic results per call. The positions of other elements are not reported (serp-features.ts).
 * Wire format: SerpApi's documentation of the Google Search API, and recorded answers.
 */
import { z } from "zod";
import { type EngineConfig, MissingSettings } from "../../config.ts";
import { languageCodeOf } from "../../query/languages.ts";
import { countryOf, isFinerThanCountry } from "../../query/locations.ts";
import { balanceSchema, toAccount } from "../account.ts";
import { googleLanguageCode, googleLanguages, isLanguageListed } from "../google-language.ts";
import { googleLocationName } from "../google-location.ts";
import { type Account, type Failure, type Page, type PageAnswer, type Provider, withCost } from "../provider.ts";
import { parseJson } from "../sanitize.ts";
import { organicElement, organicRow } from "./organic-results.ts";
import { membersMax, text } from "./row-schemas.ts";
import { featuresAbove, featuresBelow } from "./serp-features.ts";

/** SerpApi answers in 1 to 4 s. By this time it has usually given up on a search itself. */
const callTimeoutMs = 20_000;
const organicPerPage = 10;
/** Recorded answers have at most 200 kB. */
const bodyCharactersMax = 4 * 1024 * 1024;
/**
 * One search at the price of the smallest plan, 25 USD for 1,000. SerpApi does not charge for an answer from its one-hour cache,
 * but does not mark it either.
 */
const costPerSearchMicroUsd = 25_000;

const answerSchema = z
  .looseObject({})
  .refine((parts) => Object.keys(parts).length <= membersMax)
  .pipe(
    z.looseObject({
      error: z.string().optional(),
      organic_results: z.array(z.unknown()).max(membersMax).pipe(z.array(organicRow)).optional(),
      search_metadata: z.object({ status: z.string().optional().catch(undefined) }).catch({ status: undefined }),
      search_information: z
        .object({ total_results: z.int().min(0).catch(0), organic_results_state: text })
        .catch({ total_results: 0, organic_results_state: "" }),
      serpapi_pagination: z.object({ next: text }).optional().catch(undefined),
      pagination: z.object({ next: text }).optional().catch(undefined),
    }),
  );
type Answer = z.infer<typeof answerSchema>;
const accountSchema = z.object({ total_searches_left: balanceSchema });
const errorSchema = z.object({ error: z.string() });
const searchStatusSchema = z.object({ search_metadata: z.object({ status: z.string() }) });

/** @throws {MissingSettings} without SERPAPI_API_KEY. */
export function openSerpapi(config: EngineConfig): Provider {
  const key = config.SERPAPI_API_KEY;
  if (key === undefined) throw new MissingSettings("serpapi", "SERPAPI_API_KEY");
  const base = config.SERPAPI_BASE_URL.replace(/\/+$/, "");
  const headers = { accept: "application/json" };
  return {
    name: "serpapi",
    can: { mobile: true, city: true, language: (languageCode) => isLanguageListed(languageCode, googleLanguages) },
    callTimeoutMs,
    concurrentCallsMax: config.SERPAPI_CONCURRENCY ?? "adaptive",
    request: (query, pageNumber) => {
      const parameters = new URLSearchParams({
        engine: "google",
        q: query.keyword,
        // Sent with every location: otherwise the country of SerpApi's own servers would outweigh the city.
        gl: countryOf(query.location).toLowerCase(),
        hl: googleLanguageCode(languageCodeOf(query.language), googleLanguages).toLowerCase(),
        ...(isFinerThanCountry(query.location) ? { location: googleLocationName(query.location) } : {}),
        device: query.device,
        start: String((pageNumber - 1) * organicPerPage),
        api_key: key,
      });
      return {
        url: `${base}/search.json?${parameters.toString()}`,
        method: "GET",
        headers,
        body: "",
      };
    },
    // An answer may repeat the key, for example in a link to SerpApi. Callers must not find it in their results.
    read: (answer) => readPage({ ...answer, body: answer.body.replaceAll(key, "") }),
    // Free. The answer repeats the key; only a number is read from it.
    account: {
      request: { url: `${base}/account.json?api_key=${key}`, method: "GET", headers, body: "" },
      read: readAccount,
    },
  };
}

function readAccount({ status, body }: PageAnswer): Account | Failure {
  const json = parseJson(body);
  const account = status === 200 ? accountSchema.safeParse(json).data : undefined;
  return account === undefined
    ? failureOfAnswer(status, json)
    : toAccount(account.total_searches_left, "searches left");
}

function readPage({ status, body }: PageAnswer): Page | Failure {
  const json = body.length > bodyCharactersMax ? undefined : parseJson(body);
  const answer = answerSchema.safeParse(json);
  const isPage = status === 200 && answer.success && hasPage(answer.data);
  return isPage ? toPage(answer.data) : failureOfAnswer(status, json);
}

/**
 * An answer with results has a page unless its search failed. An answer without results has one only if it states that
 * Google has none: usually in the field `error`, which then does not mean a failure.
 */
function hasPage({ organic_results, error, search_metadata, search_information }: Answer): boolean {
  const { status } = search_metadata;
  if (organic_results !== undefined && organic_results.length > 0) {
    return status === "Success" || (status === undefined && error === undefined);
  }
  if (status !== "Success") return false;
  if (error !== undefined) return /hasn't returned any results/i.test(error);
  return organic_results !== undefined || /^fully empty$/i.test(search_information.organic_results_state);
}

function toPage(answer: Answer): Page {
  const { organic_results: organic = [], search_information, serpapi_pagination, pagination } = answer;
  const pages = serpapi_pagination ?? pagination;
  // The last page has no next page. If an answer has no pagination at all, one more request is better than too few results.
  const hasMore = organic.length > 0 && (pages === undefined || pages.next !== "");
  const total = search_information.total_results;
  // Sometimes the total is only the number of results on this page.
  const isTotalWrong = total < organic.length || (total === organic.length && hasMore);
  return {
    elements: [...featuresAbove(answer), ...organic.map(organicElement), ...featuresBelow(answer)],
    totalResultsCount: isTotalWrong ? 0 : total,
    hasMore,
    costMicroUsd: costPerSearchMicroUsd,
  };
}

/**
 * Only the message distinguishes an empty account from too many searches per hour: both are a 429. In older answers, an empty
 * account is a 200.
 */
function failureOfAnswer(status: number, json: unknown): Failure {
  const message = errorSchema.safeParse(json).data?.error ?? "";
  if (/run out of searches|credit is too low|invalid api key/i.test(message)) return { failure: "account_refused" };
  if (status === 400) return failureOfParameter(message);
  if (status === 401 || status === 402 || status === 403) return { failure: "account_refused" };
  if (status === 429) return { failure: "rate_limited" };
  if (status === 408 || status >= 500) return { failure: "unavailable" };
  if (status >= 400) return { failure: "request_refused" };
  return status === 200 ? failureOfSearch(json) : { failure: "unreadable" };
}

/** ``Unsupported `Atlantis` location - location parameter.``: another provider may support the location, country or language. */
function failureOfParameter(message: string): Failure {
  const parameter = /^unsupported\b.*\b(location|gl|hl) parameter/is.exec(message)?.[1]?.toLowerCase();
  if (parameter === undefined) return { failure: "request_refused" };
  return { failure: "query_refused", field: parameter === "hl" ? "language" : "location" };
}

/** SerpApi charges for a search that succeeded, even if the adapter cannot read the answer. */
function failureOfSearch(json: unknown): Failure {
  const status = searchStatusSchema.safeParse(json).data?.search_metadata.status;
  if (status === "Error") return { failure: "unavailable" };
  if (status === "Queued" || status === "Processing") return { failure: "timeout" };
  return withCost({ failure: "unreadable" }, status === "Success" ? costPerSearchMicroUsd : 0);
}
