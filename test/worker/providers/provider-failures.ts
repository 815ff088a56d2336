import type { FailureKind } from "../../../worker/providers/provider.ts";
import type { ProviderName } from "../../../shared/config.ts";
import { answerWith } from "../../harness/fixtures/searxng-page.ts";
import { row, succeededMetadata } from "../../harness/fixtures/serpapi-page.ts";

const noSearches = "Your account has run out of searches.";
const noSearchesThisMonth = "Your searches for the month are exhausted. You can upgrade plans on SerpApi.com website.";
/** SerpApi's message for no results at Google. In other answers it is a failure. */
export const noResultsMessage = "Google hasn't returned any results for this query.";

type FailureCase = [status: number, body: unknown, kind: FailureKind];

/** Serper: only the message distinguishes an empty account from a forbidden query. */
const serperFailures: [status: number, message: string, kind: FailureKind][] = [
  [403, "Unauthorized.", "account_refused"],
  [401, "", "account_refused"],
  [400, "Not enough credits", "account_refused"],
  [400, "Query pattern not allowed for free accounts.", "query_refused"],
  [400, "Missing query parameter", "request_refused"],
  [404, "Not found", "request_refused"],
  [429, "Too many requests", "rate_limited"],
  [500, "Internal server error", "unavailable"],
  [503, "", "unavailable"],
  [204, "", "unreadable"],
  [200, "Unauthorized.", "unreadable"],
];

/** SerpApi: the message decides, too. */
const serpapiFailures: [status: number, error: string, kind: FailureKind][] = [
  [400, "Missing query `q` parameter.", "request_refused"],
  [400, "Unsupported `Atlantis, United States` location - location parameter.", "query_refused"],
  [400, "Unsupported `xx` Google country - gl parameter.", "query_refused"],
  [400, "Unsupported `xx` interface language - hl parameter.", "query_refused"],
  [400, "Unsupported `fridge` device - device parameter.", "request_refused"],
  [401, "Invalid API key. Your API key should be here: https://serpapi.example/manage-api-key", "account_refused"],
  [403, "", "account_refused"],
  [402, "", "account_refused"],
  [404, "", "request_refused"],
  [410, "", "request_refused"],
  [429, noSearches, "account_refused"],
  [429, noSearchesThisMonth, "account_refused"],
  [429, "You are exceeding the hourly throughput limit.", "rate_limited"],
  [429, "", "rate_limited"],
  [408, "", "unavailable"],
  [500, "", "unavailable"],
  [503, "We couldn't get valid results for this search. Please try again later.", "unavailable"],
  [503, noResultsMessage, "unavailable"],
  [202, "", "unreadable"],
  [204, "", "unreadable"],
];

/** SearchApi: the message distinguishes an empty account from too many searches per hour. */
const searchapiFailures: [status: number, error: string, kind: FailureKind][] = [
  [400, "Missing required parameter q.", "request_refused"],
  [401, "Invalid API key.", "account_refused"],
  [
    429,
    "You have used all of the searches for the month. Please upgrade your plan on SearchApi.io.",
    "account_refused",
  ],
  [429, "", "rate_limited"],
  [404, "", "request_refused"],
  [500, "", "unavailable"],
  [503, "", "unavailable"],
  [204, "", "unreadable"],
];

/** SerpApi and SearchApi: a 503 about this search alone. */
export const failedSearch = {
  search_metadata: { status: "Error" },
  error: "We couldn't get valid results for this search. Please try again later.",
};

/** SerpApi: failures with the status 200. */
const serpapiFailuresUnder200: [json: object, kind: FailureKind][] = [
  [{ error: "Your account credit is too low, please add more credits." }, "account_refused"],
  [{ error: noSearches }, "account_refused"],
  [{ error: noSearchesThisMonth }, "account_refused"],
  [{ search_metadata: { status: "Error" }, error: "Try again." }, "unavailable"],
  [{ search_metadata: { status: "Error" }, organic_results: [row] }, "unavailable"],
  [{ search_metadata: { status: "Processing" } }, "timeout"],
  [{ search_metadata: { status: "Queued" }, organic_results: [] }, "timeout"],
  [{ search_metadata: { status: "Perhaps" }, organic_results: [row] }, "unreadable"],
  [{ search_metadata: succeededMetadata, error: "Something else." }, "unreadable"],
  [{ search_metadata: succeededMetadata, organic_results: [], error: "Else." }, "unreadable"],
  [{ organic_results: [row], error: "Else." }, "unreadable"],
  [{ search_metadata: succeededMetadata, organic_results: [row], error: { message: "a" } }, "unreadable"],
];

/** SearXNG: failures of the instance itself. */
const searxngFailures: FailureCase[] = [
  [400, { error: "No query" }, "query_refused"],
  [400, { error: 'Invalid value "x" for parameter pageno' }, "request_refused"],
  [401, {}, "account_refused"],
  [403, {}, "account_refused"],
  [404, {}, "request_refused"],
  [405, {}, "request_refused"],
  [408, {}, "unavailable"],
  [429, "Too Many Requests", "rate_limited"],
  [500, { error: "search error" }, "unavailable"],
  [502, {}, "unavailable"],
  [302, {}, "unreadable"],
  [204, {}, "unreadable"],
  [200, { error: "search error" }, "unreadable"],
];

/** SearXNG: its messages for a failure of the engine `google`. */
const searxngEngineErrors: [text: string, kind: FailureKind][] = [
  ["CAPTCHA", "blocked"],
  ["Suspended: CAPTCHA", "blocked"],
  ["access denied", "blocked"],
  ["Suspended: access denied", "blocked"],
  ["too many requests", "blocked"],
  ["Suspended: too many requests", "blocked"],
  ["timeout", "timeout"],
  ["Suspended: timeout", "blocked"],
  ["parsing error", "unreadable"],
  ["unexpected crash", "unreadable"],
  ["server API error", "unavailable"],
  ["HTTP error", "unavailable"],
  ["HTTP connection error", "unavailable"],
  ["HTTP protocol error", "unavailable"],
  ["network error", "unavailable"],
  ["proxy error", "unavailable"],
  ["SSL error: certificate validation has failed", "unavailable"],
  ["Zugriff verweigert", "blocked"],
  ["Ausgesetzt: CAPTCHA", "blocked"],
  ["доступ запрещён", "blocked"],
  ["请求过于频繁", "blocked"],
  ["أسئلة التحقق", "blocked"],
  ["erreur HTTP", "unavailable"],
  ["", "blocked"],
];

/** DataForSEO: status codes of a task or of the whole answer. */
const dataforseoStatusCodes: [kind: FailureKind, codes: number[]][] = [
  ["request_refused", [40000, 40006, 40400, 40401, 40402, 40403, 40404, 40501, 40502, 40503, 40506, 50100]],
  ["account_refused", [40100, 40104, 40200, 40201, 40203, 40204, 40207, 40210]],
  ["blocked", [40101]],
  ["unavailable", [40103, 50000, 50001, 50301, 50303, 50304]],
  ["rate_limited", [40202, 40205, 40206, 40209]],
  ["unreadable", [40601, 40602, 20100, 99999]],
  ["timeout", [50401, 50402]],
];

/** An answer of DataForSEO whose only task has failed. */
export function failedTask(code: number, message: string, cost = 0) {
  const task = { id: "1", status_code: code, status_message: message, cost, result_count: 0, result: null };
  return { version: "0.1", status_code: 20000, status_message: "Ok.", cost, tasks_error: 1, tasks: [task] };
}

/** Every known failure of each provider, as a whole answer, with its kind. */
export const providerFailures: Record<ProviderName, FailureCase[]> = {
  sandbox: [
    [403, "", "account_refused"],
    [503, "", "unavailable"],
    [200, "<!doctype html>", "unreadable"],
  ],
  serper: serperFailures.map(([status, message, kind]) => [status, { message, statusCode: status }, kind]),
  serpapi: [
    ...serpapiFailures.map(([status, error, kind]): FailureCase => [status, { error }, kind]),
    ...serpapiFailuresUnder200.map(([json, kind]): FailureCase => [200, json, kind]),
    [503, failedSearch, "unavailable"],
    [429, failedSearch, "rate_limited"],
  ],
  searchapi: [
    ...searchapiFailures.map(([status, error, kind]): FailureCase => [status, { error }, kind]),
    [200, failedSearch, "unavailable"],
    [503, failedSearch, "unavailable"],
    [200, { search_metadata: { status: "Success" }, error: "Something else." }, "unreadable"],
    [200, { search_metadata: { status: "Processing" } }, "timeout"],
  ],
  searxng: [
    ...searxngFailures,
    ...searxngEngineErrors.flatMap(([text, kind]): FailureCase[] =>
      [[], ["pump repair"]].map((suggestions) => {
        return [200, answerWith({ unresponsive_engines: [["google", text]], suggestions }), kind];
      }),
    ),
  ],
  dataforseo: dataforseoStatusCodes.flatMap(([kind, codes]) =>
    codes.flatMap((code): FailureCase[] => {
      const whole = { status_code: code, status_message: "No.", cost: 0, tasks: null };
      return [
        [200, failedTask(code, "No."), kind],
        [200, whole, kind],
        [500, whole, kind],
      ];
    }),
  ),
};
