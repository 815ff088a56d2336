import { type Failure, type FailureKind, withCost } from "../provider.ts";

/** The search succeeded. */
export const statusOk = 20_000;
/** Google has no results for this query. DataForSEO ran the search and charges for it: an empty page, not a failure. */
export const statusNoResults = 40_102;
const statusInvalidField = 40_501;
const statusOutdatedLocation = 40_505;

/** How an answer or its task reports its outcome. */
export type Status = { status_code: number; status_message: string; cost?: number | undefined };

/** The codes (docs.dataforseo.com/v3/appendix/errors) whose meaning their hundreds alone do not give. */
const kindsByCode: ReadonlyMap<number, FailureKind> = new Map([
  // Google did not answer DataForSEO, which has retried by itself and charges for each attempt.
  [40_101, "blocked"],
  // "No results" is valid only as the status of the task itself.
  [statusNoResults, "unreadable"],
  // The task was interrupted; the documentation asks to send it again.
  [40_103, "unavailable"],
  // Too many calls: per minute, of the same task per hour or day, or at the same time.
  [40_202, "rate_limited"],
  [40_205, "rate_limited"],
  [40_206, "rate_limited"],
  [40_209, "rate_limited"],
  // Not implemented: the adapter has called a wrong endpoint.
  [50_100, "request_refused"],
  // DataForSEO's own timeouts: 120 s for the engine, and a slow page.
  [50_401, "timeout"],
  [50_402, "timeout"],
]);

/** By the parameter in `Invalid Field: 'location_name'.`. Every other parameter is set by the adapter alone. */
const fieldsByParameter: ReadonlyMap<string, NonNullable<Failure["field"]>> = new Map([
  ["keyword", "keyword"],
  ["location_name", "location"],
  ["location_code", "location"],
  ["language_code", "language"],
]);

/** The failure of a status, with its cost: DataForSEO also charges for some searches that failed. */
export function failureOfStatus(status: Status): Failure {
  return withCost(failureOfCode(status), toMicroUsd(status.cost) ?? 0);
}

/** The failure of an HTTP status when the body has no status code: a proxy answered, or the account is refused. */
export function failureOfHttpStatus(httpStatus: number): Failure {
  if (httpStatus === 401 || httpStatus === 402 || httpStatus === 403) return { failure: "account_refused" };
  if (httpStatus === 429) return { failure: "rate_limited" };
  if (httpStatus === 408 || httpStatus >= 500) return { failure: "unavailable" };
  return { failure: httpStatus >= 400 ? "request_refused" : "unreadable" };
}

export function toMicroUsd(costUsd: number | undefined): number | undefined {
  return costUsd === undefined ? undefined : Math.round(costUsd * 1_000_000);
}

function failureOfCode({ status_code: code, status_message: message }: Status): Failure {
  if (code === statusOutdatedLocation) return { failure: "query_refused", field: "location" };
  if (code === statusInvalidField) {
    const field = fieldsByParameter.get(/invalid field: '(\w{1,30})'/i.exec(message)?.[1]?.toLowerCase() ?? "");
    return field === undefined ? { failure: "request_refused" } : { failure: "query_refused", field };
  }
  return { failure: kindsByCode.get(code) ?? kindOfHundreds(Math.floor(code / 100)) };
}

/** 401: credentials. 402: payment and account limits. Other 40x: the request. 50x: DataForSEO's own errors. */
function kindOfHundreds(hundreds: number): FailureKind {
  if (hundreds === 401 || hundreds === 402) return "account_refused";
  // 406 ("in the queue") and 201 ("task created") are never valid answers to a live task.
  if (hundreds >= 400 && hundreds < 406) return "request_refused";
  return hundreds >= 500 && hundreds < 600 ? "unavailable" : "unreadable";
}
