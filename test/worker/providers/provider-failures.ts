import type { Failure, FailureKind } from "../../../worker/providers/provider.ts";
import type { HttpProviderName } from "../../harness/fixtures/made-up-answers.ts";
import { answerWith } from "../../harness/fixtures/searxng-page.ts";
import { succeededMetadata } from "../../harness/fixtures/serpapi-page.ts";

const row = { title: "Pumps", link: "https://pumps.example/" };
const noSearches = "Your account has run out of searches.";
const noSearchesThisMonth = "Your searches for the month are exhausted. You can upgrade plans on SerpApi.com website.";
/** SerpApi's message for no results at Google. In other answers it is a failure. */
export const noResultsMessage = "Google hasn't returned any results for this query.";

/** Serper: only the message distinguishes an empty account from a forbidden query. */
export const serperFailures: [status: number, message: string, kind: FailureKind][] = [
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
];

/** SerpApi: the message decides, too. */
export const serpapiFailures: [status: number, error: string, failure: Failure][] = [
  [400, "Missing query `q` parameter.", { failure: "request_refused" }],
  [
    400,
    "Unsupported `Atlantis, United States` location - location parameter.",
    { failure: "query_refused", field: "location" },
  ],
  [400, "Unsupported `xx` Google country - gl parameter.", { failure: "query_refused", field: "location" }],
  [400, "Unsupported `xx` interface language - hl parameter.", { failure: "query_refused", field: "language" }],
  [400, "Unsupported `fridge` device - device parameter.", { failure: "request_refused" }],
  [
    401,
    "Invalid API key. Your API key should be here: https://serpapi.example/manage-api-key",
    { failure: "account_refused" },
  ],
  [403, "", { failure: "account_refused" }],
  [402, "", { failure: "account_refused" }],
  [404, "", { failure: "request_refused" }],
  [410, "", { failure: "request_refused" }],
  [429, noSearches, { failure: "account_refused" }],
  [429, noSearchesThisMonth, { failure: "account_refused" }],
  [429, "You are exceeding the hourly throughput limit.", { failure: "rate_limited" }],
  [429, "", { failure: "rate_limited" }],
  [408, "", { failure: "unavailable" }],
  [500, "", { failure: "unavailable" }],
  [503, "We couldn't get valid results for this search. Please try again later.", { failure: "unavailable" }],
  [503, noResultsMessage, { failure: "unavailable" }],
  [202, "", { failure: "unreadable" }],
  [204, "", { failure: "unreadable" }],
];

/** SerpApi: failures with the status 200. */
export const serpapiFailuresUnder200: [what: string, json: object, kind: FailureKind][] = [
  ["no credit", { error: "Your account credit is too low, please add more credits." }, "account_refused"],
  ["no searches", { error: noSearches }, "account_refused"],
  ["no searches this month, in older answers", { error: noSearchesThisMonth }, "account_refused"],
  ["a search that failed", { search_metadata: { status: "Error" }, error: "Try again." }, "unavailable"],
  [
    "a search that failed, with results",
    { search_metadata: { status: "Error" }, organic_results: [row] },
    "unavailable",
  ],
  ["a search that still runs", { search_metadata: { status: "Processing" } }, "timeout"],
  ["a search that waits", { search_metadata: { status: "Queued" }, organic_results: [] }, "timeout"],
  ["an unknown status", { search_metadata: { status: "Perhaps" }, organic_results: [row] }, "unreadable"],
  ["an unknown error", { search_metadata: succeededMetadata, error: "Something else." }, "unreadable"],
  [
    "an unknown error with an empty list",
    { search_metadata: succeededMetadata, organic_results: [], error: "Else." },
    "unreadable",
  ],
  ["results without a status, but with an error", { organic_results: [row], error: "Else." }, "unreadable"],
];

/** SearXNG: failures of the instance itself. */
export const searxngFailures: [status: number, body: unknown, kind: FailureKind][] = [
  [400, { error: "No query" }, "request_refused"],
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
export const searxngEngineErrors: [text: string, kind: FailureKind][] = [
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
export const dataforseoStatusCodes: [code: number, kind: FailureKind][] = [
  [40000, "request_refused"],
  [40006, "request_refused"],
  [40100, "account_refused"],
  [40101, "blocked"],
  [40103, "unavailable"],
  [40104, "account_refused"],
  [40200, "account_refused"],
  [40201, "account_refused"],
  [40202, "rate_limited"],
  [40203, "account_refused"],
  [40204, "account_refused"],
  [40205, "rate_limited"],
  [40206, "rate_limited"],
  [40207, "account_refused"],
  [40209, "rate_limited"],
  [40210, "account_refused"],
  [40400, "request_refused"],
  [40401, "request_refused"],
  [40402, "request_refused"],
  [40403, "request_refused"],
  [40404, "request_refused"],
  [40501, "request_refused"],
  [40502, "request_refused"],
  [40503, "request_refused"],
  [40506, "request_refused"],
  [40601, "unreadable"],
  [40602, "unreadable"],
  [20100, "unreadable"],
  [50000, "unavailable"],
  [50001, "unavailable"],
  [50100, "request_refused"],
  [50301, "unavailable"],
  [50303, "unavailable"],
  [50304, "unavailable"],
  [50401, "timeout"],
  [50402, "timeout"],
  [99999, "unreadable"],
];

/** An answer of DataForSEO whose only task has failed. */
export function failedTask(code: number, message: string, cost = 0) {
  const task = { id: "1", status_code: code, status_message: message, cost, result_count: 0, result: null };
  return { version: "0.1", status_code: 20000, status_message: "Ok.", cost, tasks_error: 1, tasks: [task] };
}

/** Every known failure of each provider, as a whole answer, with its kind. */
export const providerFailures: Record<HttpProviderName, [status: number, body: unknown, kind: FailureKind][]> = {
  serper: serperFailures.map(([status, message, kind]) => [status, { message, statusCode: status }, kind]),
  serpapi: [
    ...serpapiFailures.map(([status, error, { failure }]): [number, unknown, FailureKind] => [
      status,
      { error },
      failure,
    ]),
    ...serpapiFailuresUnder200.map(([, json, kind]): [number, unknown, FailureKind] => [200, json, kind]),
  ],
  searxng: [
    ...searxngFailures,
    ...searxngEngineErrors.map(([text, kind]): [number, unknown, FailureKind] => [
      200,
      answerWith({ unresponsive_engines: [["google", text]] }),
      kind,
    ]),
  ],
  dataforseo: dataforseoStatusCodes.map(([code, kind]) => [200, failedTask(code, "No."), kind]),
};
