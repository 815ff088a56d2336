import type { ServerResponse } from "node:http";
import type { RateWindow } from "../shared/credits/admit.ts";
import type { Plan } from "../shared/credits/plans.ts";
import type { ErrorReason } from "../shared/errors/error-messages.ts";
import { CallerError, type ErrorCode, type ErrorDetails } from "../shared/errors.ts";
import type { Log } from "../shared/log.ts";
import type { SearchTrace } from "../shared/queue/replies.ts";
import { setRateLimitHeaders } from "./http/send-json.ts";
import { type LogFields, requestScopeOf } from "./http/request-scope.ts";

/** Reasons that only Stripe and the account pages get, and no caller of the API. */
type BillingReason = "payments_unavailable" | "card_unavailable" | "topup_not_credited" | "too_many_downloads";

/** 503 with the time, in milliseconds, after which a retry makes sense. */
export function unavailable(reason: ErrorReason<"unavailable"> | BillingReason, retryAfterMs = 1_000): CallerError {
  return new CallerError("unavailable", { reason, retryAfterMs });
}

/** 504: the search's deadline passed without an answer. */
export const engineTimeout = (timeoutMs: number): CallerError => new CallerError("engine_timeout", { timeoutMs });

const concurrencyRetryAfterMs = 1_000;
const unpaidCallsSeconds = 3_600;

interface RateLimitDetails extends ErrorDetails {
  reason: ErrorReason<"rate_limited">;
  retryAfterMs: number;
  limit: number;
  windowSeconds?: number;
}

/** 429 with the state of the rate window, for the RateLimit headers. */
export class RateLimited extends CallerError {
  readonly plan: Plan;
  readonly window: RateWindow;

  constructor(details: RateLimitDetails, plan: Plan, window: RateWindow) {
    super("rate_limited", details);
    this.plan = plan;
    this.window = window;
  }

  /** @param retryAfterMs until the limit `unpaid_calls` allows a search again. */
  static byPlan(
    reason: "window" | "concurrency" | "unpaid_calls",
    plan: Plan,
    window: RateWindow,
    retryAfterMs = 0,
  ): RateLimited {
    const { windowLimit, windowSeconds, concurrency, unpaidCalls } = plan;
    const details: RateLimitDetails = {
      window: { reason, retryAfterMs: window.leftMs, limit: windowLimit, windowSeconds },
      concurrency: { reason, retryAfterMs: concurrencyRetryAfterMs, limit: concurrency },
      unpaid_calls: { reason, retryAfterMs, limit: unpaidCalls, windowSeconds: unpaidCallsSeconds },
    }[reason];
    return new RateLimited(details, plan, window);
  }

  /** A bound that this process keeps in memory. The window in Redis is not read: until the retry, no request is left of it. */
  static byBound(details: RateLimitDetails, plan: Plan): RateLimited {
    return new RateLimited(details, plan, { used: plan.windowLimit, leftMs: details.retryAfterMs });
  }
}

/** A search that was enqueued and failed. The trace is for the log; the caller does not get it. */
export class SearchFailed extends CallerError {
  readonly trace: Partial<SearchTrace>;

  constructor(code: ErrorCode, details: ErrorDetails, trace: Partial<SearchTrace>) {
    super(code, details);
    this.trace = trace;
  }
}

/** The caller disconnected, so the request has no response. */
export class CallerDisconnected extends Error {
  constructor() {
    super("the caller disconnected");
  }
}

/** The error that the caller gets for anything thrown. A defect is logged and becomes `internal_error`. */
export function toCallerError(log: Log, requestId: string, error: unknown): CallerError {
  if (error instanceof CallerError) return error;
  log.error({ err: error, requestId }, "unhandled error");
  return new CallerError("internal_error");
}

/** Adds an error to its request's scope and log line, and sets the RateLimit headers where it carries a window. */
export function recordError(response: ServerResponse, error: CallerError): void {
  const scope = requestScopeOf(response);
  scope.error = error;
  Object.assign(scope.logFields, errorLogFields(error));
  if (error instanceof RateLimited && !response.headersSent) setRateLimitHeaders(response, error.plan, error.window);
}

function errorLogFields(error: CallerError): LogFields {
  const { code, details } = error;
  return {
    outcome: code,
    ...(error instanceof SearchFailed && error.trace),
    ...(typeof details.reason === "string" && { reason: details.reason }),
  };
}
