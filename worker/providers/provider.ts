import type { LocationRow } from "../locations/listed-location.ts";
import type { Query } from "../../shared/query/query.ts";
import type { Result } from "../../shared/results.ts";
import type { Capabilities } from "../../shared/capabilities/capabilities.ts";
import { z } from "zod";
import { googleCountryName } from "../../shared/query/countries.ts";
import { countryOf } from "../../shared/query/locations.ts";
import { parseJson } from "./sanitize.ts";

/**
 * How a call, and with it an attempt, can fail.
 *
 * - `retry`: whether the same provider is worth a retry. Not after an unreadable answer or a timeout: the retry would
 *   mostly end the same way, and may be billed again.
 * - `countsAgainstProvider`: whether the circuit breaker counts it as a failure of the provider; `false` counts as a
 *   success, `null` is not counted.
 * - `reason`: what the caller gets as `details.reason` if no other provider answers; `timeout` becomes a 504.
 */
export const failureKinds = {
  /** Unreachable, or a server error (5xx). */
  unavailable: { retry: true, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** Google blocked the provider. It retried itself, and may bill each try. */
  blocked: { retry: false, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** Our account has too many calls running there. */
  rate_limited: { retry: true, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** Wrong key or no credits left. The operator has to act. */
  account_refused: { retry: false, countsAgainstProvider: true, reason: "provider_refused" },
  /** Our account there does not allow this query. */
  query_refused: { retry: false, countsAgainstProvider: false, reason: "refused_by_provider" },
  /** The provider rejects our request: a defect of the adapter or a change of its API. The query may have caused it. */
  request_refused: { retry: false, countsAgainstProvider: false, reason: "provider_refused" },
  /** Not an answer to the request: not JSON, wrong shape, redirect, too large. */
  unreadable: { retry: false, countsAgainstProvider: true, reason: "unreadable_answer" },
  /** No complete answer in time. */
  timeout: { retry: false, countsAgainstProvider: true, reason: "timeout" },
  /** No complete answer, in less time than the provider usually needs. */
  out_of_time: { retry: false, countsAgainstProvider: null, reason: "timeout" },
  /** No bulkhead slot became free while there was time for a call. */
  busy: { retry: false, countsAgainstProvider: null, reason: "timeout" },
  /** Cancelled: a hedge, started later, sent its first page earlier. */
  lost_hedge: { retry: false, countsAgainstProvider: true, reason: "timeout" },
  /** Cancelled: it was the hedge, and the first attempt answered after all. */
  hedge_cancelled: { retry: false, countsAgainstProvider: null, reason: "timeout" },
  /** Cancelled, because another page of the attempt had failed; or not sent, because the caller had disconnected. */
  dropped: { retry: false, countsAgainstProvider: null, reason: "provider_unavailable" },
} as const;

export type FailureKind = keyof typeof failureKinds;

/** The label values of `provider_calls_total`. An attempt that is `busy` made no call. */
export const callOutcomes = ["ok", ...Object.keys(failureKinds).filter((kind) => kind !== "busy")];

export type Failure = {
  failure: FailureKind;
  /** The field of the query that was refused, if the provider names it; otherwise `keyword` is assumed. */
  field?: "keyword" | "location" | "language";
  /** What the provider charged although it failed. */
  costMicroUsd?: number;
  /** Whether it failed for lack of time: the same search with a later deadline may succeed. */
  outOfTime?: boolean;
  /** Whether the provider has too much to do. Without it, a 503 says so. */
  overloaded?: boolean;
};

/** A failure with its cost, if it cost anything. */
export function withCost(failure: Failure, costMicroUsd: number): Failure {
  return costMicroUsd === 0 ? failure : { ...failure, costMicroUsd };
}

/** What an HTTP status means where the body says no more. */
export function failureOfHttpStatus(status: number): FailureKind {
  if (status === 401 || status === 402 || status === 403) return "account_refused";
  if (status === 429) return "rate_limited";
  if (status === 408 || status >= 500) return "unavailable";
  return status >= 400 ? "request_refused" : "unreadable";
}

/** A result before its rank among all pages is known. */
export type Element = Omit<Result, "rank"> & {
  /** Its place among all elements as the provider states it, from 1. Absent where it states none. */
  providerRank?: number;
};

/** One page that was read in full, in page order. A failure must never become an empty page: that would be charged. */
export type Page = {
  elements: Element[];
  /** The engine's own estimate for the query; 0 if it gives none. */
  totalResultsCount: number;
  /** What the engine searched instead of the keyword, if it corrected the spelling. */
  searchedKeyword?: string;
  /** Whether elements at its end were left out, because they cannot be in the answer. */
  truncated?: true;
  /** Rows that held something but could not be read, and are left out. Absent: none. */
  unreadableRows?: number;
  /** Whether further pages are worth fetching. */
  hasMore: boolean;
  /** The organic results of each page of this search, if not as many as the provider's. Read from the first page. */
  organicPerPage?: number;
  /** The provider's key to the AI Overview that this page only announces. It lives for about a minute. */
  overviewToken?: string;
  costMicroUsd: number;
};

export type PageOutcome = Page | Failure;

/** What our account at a provider has left, in the provider's own unit: `12.34 USD`. */
export type Account = { balance: string; isSpent: boolean };

/** A GET, or with a body a POST. */
export type PageRequest = { url: string; headers: Record<string, string>; body: string };
export type PageAnswer = { status: number; headers: Record<string, string | string[] | undefined>; body: string };

/** A query as one provider gets it. */
export type ProviderQuery = Query & {
  /** The name of its city or region in the provider's own list of locations. Absent without a stored list. */
  listedLocation?: string;
};

/** Sends one request. Rejects if there is no answer, and soon after the signal is aborted. */
export type Transport = (request: PageRequest, signal: AbortSignal) => Promise<PageAnswer>;

/**
 * The adapter of one upstream provider of Google results. `request` and `read` are pure functions; HTTP, timeouts,
 * retries, concurrency limits, circuit breaking, failover and cost accounting are in `policies/`, once for all providers.
 */
export type Provider = {
  name: string;
  can: Capabilities;
  /** Milliseconds after which one call is given up. */
  callTimeoutMs: number;
  /**
   * Calls that one process runs at once; `adaptive` if the limit finds itself (`policies/adaptive-limit.ts`). Further calls
   * wait for a slot, or go to another provider.
   */
  concurrentCallsMax: number | "adaptive";
  /** The organic results of one page, if not 10. */
  organicPerPage?: number;
  /**
   * The request for one page; page numbers begin at 1. A page has up to so many organic results, or all that the depth needs:
   * then `read` returns it with `hasMore: false`.
   */
  request: (query: ProviderQuery, pageNumber: number) => PageRequest;
  /** The page in an answer of any status, or the kind of failure that the answer is. */
  read: (answer: PageAnswer) => PageOutcome;
  /** A second call, for an AI Overview that a page only announces. Its answer is a page with that element. Absent: never made. */
  overview?: { request: (token: string) => PageRequest; read: (answer: PageAnswer) => PageOutcome };
  /** A free call that returns the state of our account. Absent if searches cost nothing. */
  account?: { request: PageRequest; read: (answer: PageAnswer) => Account | Failure };
  /** A free call that returns the whole list of locations that it can search from. Absent if it publishes none. */
  locations?: { request: PageRequest; read: (answer: PageAnswer) => LocationRow[] | Failure };
  /** Replaces HTTP, for a provider that lives in this process. */
  transport?: Transport;
};

/** No account holds or owes more: a larger number is an error at the provider. */
const balanceMax = 1_000_000_000;

/** The remaining balance that a provider reports, in its own unit. */
export const balanceSchema = z.number().min(-balanceMax).max(balanceMax);

/** The remaining balance as operators read it, money to the cent: `2,492 credits`, `12.34 USD`. */
export function toAccount(remaining: number, unit: "credits" | "searches left" | "USD"): Account {
  const digits = unit === "USD" ? 2 : 0;
  const amount = remaining.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return { balance: `${amount} ${unit}`, isSpent: remaining <= 0 };
}

/**
 * Reads the JSON of an answer with the status 200.
 * @param read returns undefined for what it cannot read. @param failureOf what such an answer means, or one with another status.
 */
export function readingJson<Found extends object>(
  read: (json: unknown) => Found | undefined,
  failureOf: (status: number, json: unknown) => Failure,
): (answer: PageAnswer) => Found | Failure {
  return ({ status, body }) => {
    const json = parseJson(body);
    return (status === 200 ? read(json) : undefined) ?? failureOf(status, json);
  };
}

/**
 * The name of a location in requests: the one in the provider's own list, or else the canonical location, its country
 * spelled as in Google's list, which the providers use: `Izmir,Turkiye`.
 */
export function googleLocationName({
  location,
  listedLocation,
}: Pick<ProviderQuery, "location" | "listedLocation">): string {
  const cityAndRegion = location.split(",").slice(0, -1);
  return listedLocation ?? [...cityAndRegion, googleCountryName(countryOf(location))].join(",");
}
