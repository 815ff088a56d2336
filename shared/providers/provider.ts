import type { Result } from "../results.ts";
import type { Query } from "../query/query.ts";

/**
 * How a page can fail to come; what it means for the caller when nobody else does better (`reason`); whether the same
 * provider is worth a second call (`retry`): what cannot be read would mostly be the same bytes again, and may be billed
 * again; and whether it speaks against the provider (`ill`), which is passed over where that happens often; null where it
 * tells nothing of the provider.
 */
export const failureKinds = {
  /** Out of reach, or an error of its own (5xx). */
  unavailable: { retry: true, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** The engine did not let the provider through; it has tried again itself, and each try may be billed. */
  blocked: { retry: false, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** Too many calls at once from our account. */
  rate_limited: { retry: true, countsAgainstProvider: true, reason: "provider_unavailable" },
  /** Our account there: a wrong key, no credits left. The operator has to act. */
  account_refused: { retry: false, countsAgainstProvider: true, reason: "provider_refused" },
  /** This query is not allowed on our account there. */
  query_refused: { retry: false, countsAgainstProvider: false, reason: "refused_by_provider" },
  /** Our request was not understood: a defect of the adapter, or a change at the provider. A query may have led to it. */
  request_refused: { retry: false, countsAgainstProvider: false, reason: "provider_refused" },
  /** An answer that cannot be what was asked for: not JSON, the wrong shape, a redirect, too large. */
  unreadable: { retry: false, countsAgainstProvider: true, reason: "unreadable_answer" },
  /** No complete answer in time. A second call may be billed twice. */
  timeout: { retry: false, countsAgainstProvider: true, reason: "timeout" },
  /** No place among our own calls to it became free while there was time for a call. */
  busy: { retry: false, countsAgainstProvider: null, reason: "timeout" },
  /** Not waited for, because a provider that was asked later answered first. */
  outrun: { retry: false, countsAgainstProvider: true, reason: "timeout" },
  /** Not waited for, because a provider that was asked before answered after all. */
  unneeded: { retry: false, countsAgainstProvider: null, reason: "timeout" },
  /** Not waited for, because another page of the same search had failed. */
  dropped: { retry: false, countsAgainstProvider: null, reason: "provider_unavailable" },
} as const;

export type FailureKind = keyof typeof failureKinds;
export type Failure = {
  failure: FailureKind;
  /** What of the query was refused, where the provider says so; else it counts as the keyword. */
  field?: "keyword" | "location" | "language";
  /** What the provider charged all the same. */
  costMicroUsd?: number;
  /** Whether it was for want of time: a search with more of it may do better. */
  outOfTime?: boolean;
};

/** A failure with what it cost, where it cost anything. */
export function withCost(failure: Failure, costMicroUsd: number): Failure {
  return costMicroUsd === 0 ? failure : { ...failure, costMicroUsd };
}

/** A result before its place among all pages is known. */
export type Element = Omit<Result, "rank">;

/** One page of results in page order. Only a page that was read in full is one: a failure never looks like an empty page. */
export type Page = {
  elements: Element[];
  /** The engine's own estimate for the query; 0 where it gives none. */
  totalResultsCount: number;
  /** Whether asking for further pages makes sense. */
  hasMore: boolean;
  costMicroUsd: number;
};

/** What our account at a provider has left, in the provider's own unit: `12.34 USD`. */
export type Account = { balance: string; isSpent: boolean };

export type PageRequest = { url: string; method: "GET" | "POST"; headers: Record<string, string>; body: string };
export type PageAnswer = { status: number; headers: Record<string, string | string[] | undefined>; body: string };

/** Carries one request to its answer. It rejects when it cannot, and soon after the signal is aborted. */
export type Transport = (request: PageRequest, signal: AbortSignal) => Promise<PageAnswer>;

/**
 * Somebody who is asked for Google's results. `request` and `read` are pure; asking, time-outs, retries, fail-over and
 * cost are written once, in ask.ts and google.ts.
 */
export type Provider = {
  name: string;
  /** Queries that ask for more than this are never sent here. */
  can: {
    mobile: boolean;
    city: boolean;
    /** Whether it searches in a language (BCP 47) from a country (ISO 3166-1, upper case). Left out: in all, from everywhere. */
    language?: (languageCode: string, countryCode: string) => boolean;
  };
  /** Milliseconds after which an answer is not waited for any longer. */
  callTimeoutMs: number;
  /** Calls that this process has under way at once; what is over waits, or goes to somebody else. */
  concurrentCallsMax: number;
  /** Page numbers begin at 1. A page has up to 10 organic results, or the whole depth: then it says that there are no more. */
  request: (query: Query, pageNumber: number) => PageRequest;
  read: (answer: PageAnswer) => Page | Failure;
  /** How to ask what our account there has left, which is free. A provider without one is a provider whose searches cost nothing. */
  account?: { request: PageRequest; read: (answer: PageAnswer) => Account | Failure };
  /** In place of HTTP, for a provider that lives in this process. */
  transport?: Transport;
};
