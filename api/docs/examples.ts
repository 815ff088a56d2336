import type { ErrorStatus } from "../error-schemas.ts";
import { type ErrorCode, type ErrorDetails, errorBody } from "../../shared/errors.ts";
import type { z } from "zod";
import type { searchRequestBody } from "../../shared/query/query.ts";
import type { CompactResponseBody, SearchResponseBody } from "../../shared/search-answer.ts";
import type { UsageResponseBody } from "../read-usage.ts";

/** A realistic request or response body; `summary` is its title. */
export interface Example<Value = unknown> {
  summary: string;
  value: Value;
}

/** Examples by name. The names appear in links and in generated code. */
export type Examples<Value = unknown> = Record<string, Example<Value>>;

const requestId = "req_01m7xxzmpjesk91yh1thm39tg3";

export const requestExamples: Examples<z.input<typeof searchRequestBody>> = {
  keywordAlone: { summary: "Only a keyword", value: { keyword: "best coffee beans" } },
  allFields: {
    summary: "Every field",
    value: {
      keyword: "kaffeebohnen",
      engine: "google",
      location: "Berlin, Germany",
      language: "de",
      device: "mobile",
      depth: 30,
      targetDomain: "example.com",
      types: ["organic", "people_also_ask"],
      format: "full",
      maxAgeSeconds: 3_600,
      include: ["fetchedAt", "answeredBy"],
    },
  },
  compact: { summary: "An answer for an agent", value: { keyword: "best coffee beans", format: "compact" } },
  sandboxFailure: { summary: "A sandbox keyword that fails with 502", value: { keyword: "sandbox:error" } },
};

const query = {
  keyword: "best coffee beans",
  engine: "google",
  location: "United States",
  language: "English",
  device: "desktop" as const,
  depth: 10,
};

export const answerExamples: Examples<SearchResponseBody | CompactResponseBody> = {
  results: {
    summary: "A search, with one of its results",
    value: {
      requestId,
      query,
      creditsCharged: 5,
      creditsRemaining: 995,
      totalResultsCount: 67_849_935,
      results: [
        {
          type: "organic",
          rank: 8,
          title: "best coffee beans: reviews by Harbour Almanac",
          url: "https://www.harbour-almanac.example/reviews/best-coffee-beans-1",
          domain: "harbour-almanac.example",
          breadcrumb: "harbour-almanac.example › reviews",
          description:
            "What Harbour Almanac found out about best coffee beans, with sources and answers to 9 questions.",
          richSnippet: { top: ["2 days ago"], bottom: ["Free delivery", "In stock: 1"] },
          siteLinks: [
            {
              title: "guides about best coffee beans",
              url: "https://www.harbour-almanac.example/guides",
              description: "",
            },
          ],
        },
      ],
    },
  },
  compact: {
    summary: "The same search in the format `compact`",
    value: {
      requestId,
      query: { ...query, format: "compact" },
      creditsCharged: 5,
      creditsRemaining: 990,
      results: [
        {
          title: "best coffee beans: reviews by Harbour Almanac",
          url: "https://www.harbour-almanac.example/reviews/best-coffee-beans-1",
          description:
            "What Harbour Almanac found out about best coffee beans, with sources and answers to 9 questions.",
        },
      ],
    },
  },
  nothingFound: {
    summary: "Nothing found, which is charged too",
    value: {
      requestId,
      query: { ...query, keyword: "sandbox:empty", targetDomain: "example.com" },
      creditsCharged: 5,
      creditsRemaining: 985,
      totalResultsCount: 0,
      results: [],
    },
  },
};

export const usageExamples: Examples<UsageResponseBody> = {
  balance: { summary: "The balance after one search", value: { creditBalanceMils: 995, plan: "free" } },
  pricePerPage: {
    summary: "A plan with a price per page and a maximum depth",
    value: { creditBalanceMils: 970, plan: "deep", pricePerPageMils: 3, maxDepth: 50 },
  },
};

const failed = (code: ErrorCode, summary: string, details: ErrorDetails = {}): Example => ({
  summary,
  value: errorBody(requestId, code, details),
});

const outOfCredits = (summary: string, details: ErrorDetails = {}) =>
  failed("out_of_credits", summary, {
    priceMils: 5,
    availableMils: 3,
    heldMils: 0,
    action: "topup",
    topupUrl: "/billing",
    ...details,
  });

/** Error examples by status. A test validates them with the schemas. */
export const errorExamples: Record<ErrorStatus, Examples> = {
  400: {
    outOfRange: failed("bad_request", "A field is out of range", {
      issues: [{ path: "depth", message: "Expected a whole number from 1 to 100." }],
    }),
    notJson: failed("bad_request", "The body is not JSON", { reason: "body_not_json" }),
    keyReused: failed("bad_request", "The Idempotency-Key was used for another query", {
      reason: "idempotency_key_reused",
    }),
    unsupported: failed("query_rejected", "No configured provider searches as a mobile device", {
      reason: "unsupported",
      field: "device",
    }),
    ambiguousLocation: failed("query_rejected", "Several places of the country have this name", {
      reason: "location_ambiguous",
      field: "location",
      candidates: ["Springfield,Illinois,United States", "Springfield,Missouri,United States"],
    }),
  },
  401: {
    noToken: failed("unauthenticated", "No token, or an invalid one"),
    noScope: failed("unauthenticated", "A valid token without the scope", { reason: "scope", scope: "search" }),
  },
  402: {
    outOfCredits: outOfCredits("Not enough credit"),
    tiedUp: outOfCredits("The credit is held by a search in flight", { availableMils: 0, heldMils: 5 }),
    limitReached: outOfCredits("A limit of the token is reached", {
      action: "raise_limit",
      reason: "token_limit",
      period: "day",
      limitMils: 500,
      renewsAt: "2026-03-02T00:00:00.000Z",
    }),
    planRequired: failed("plan_required", "The plan does not include searches", { plan: "reader", action: "upgrade" }),
    tooDeep: failed("plan_required", "The plan does not include searches of this depth", {
      plan: "deep",
      action: "upgrade",
      reason: "max_depth",
      maxDepth: 50,
    }),
    suspended: failed("plan_required", "The organization is suspended", {
      plan: "free",
      action: "contact_operator",
      reason: "suspended",
    }),
  },
  429: {
    window: failed("rate_limited", "The rate window is full", {
      reason: "window",
      retryAfterMs: 41_250,
      limit: 60,
      windowSeconds: 60,
    }),
    concurrency: failed("rate_limited", "Too many searches in flight", {
      reason: "concurrency",
      retryAfterMs: 1_000,
      limit: 5,
    }),
    unread: failed("rate_limited", "Earlier answers have to be read first", {
      reason: "unread",
      retryAfterMs: 1_000,
      limit: 33_554_432,
    }),
    refused: failed("rate_limited", "Too many refused or replayed requests", {
      reason: "refused",
      retryAfterMs: 41_250,
      limit: 600,
      windowSeconds: 60,
    }),
    unpaidCalls: failed("rate_limited", "Too many provider calls were left unpaid", {
      reason: "unpaid_calls",
      retryAfterMs: 72_000,
      limit: 50,
      windowSeconds: 3_600,
    }),
  },
  500: { defect: failed("internal_error", "An internal error") },
  501: {
    bing: failed("not_implemented", "An engine that is not implemented", { engine: "bing", supported: ["google"] }),
  },
  502: {
    down: failed("engine_error", "Every provider failed", { reason: "provider_unavailable" }),
    refused: failed("engine_error", "The provider rejected the operator's account", { reason: "provider_refused" }),
    unreadable: failed("engine_error", "The provider's answer could not be parsed", { reason: "unreadable_answer" }),
  },
  503: {
    noWorkers: failed("unavailable", "No worker is running", { reason: "no_workers", retryAfterMs: 1_000 }),
    queueTooLong: failed("unavailable", "The queue is too long", { reason: "queue_too_long", retryAfterMs: 30_000 }),
  },
  504: { late: failed("engine_timeout", "The deadline passed", { timeoutMs: 30_000 }) },
};
