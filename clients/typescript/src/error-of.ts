import type { ApiError } from "./answers.ts";
import * as errors from "./errors.ts";

const classes: Record<
  ApiError["code"] | "lost_reply" | "unexpected_reply" | "aborted",
  new (
    failure: errors.Failure,
    sent: errors.Sent,
  ) => errors.SerpmillError
> = {
  bad_request: errors.BadRequestError,
  query_rejected: errors.QueryRejectedError,
  unauthenticated: errors.UnauthenticatedError,
  plan_required: errors.PlanRequiredError,
  out_of_credits: errors.OutOfCreditsError,
  rate_limited: errors.RateLimitedError,
  internal_error: errors.InternalError,
  not_implemented: errors.NotImplementedError,
  engine_error: errors.EngineError,
  unavailable: errors.UnavailableError,
  engine_timeout: errors.EngineTimeoutError,
  lost_reply: errors.LostReplyError,
  unexpected_reply: errors.UnexpectedReplyError,
  aborted: errors.AbortedError,
};

/** The error of a failed call, of the class of its code. A code that a newer API added gets the base class. */
export function errorOf(failure: errors.Failure, sent: errors.Sent): errors.SerpmillError {
  const Class =
    new Map<string, (typeof classes)["aborted"]>(Object.entries(classes)).get(failure.code) ?? errors.SerpmillError;
  return new Class(failure, sent);
}
