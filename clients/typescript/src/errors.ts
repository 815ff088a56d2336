import type { ApiError, DetailsOf } from "./answers.ts";

/** What every error says. */
export interface Failure {
  code: string;
  message: string;
  /** Fields that depend on the code. */
  details: object;
  /** The HTTP status; undefined if no answer came. */
  status?: number | undefined;
  requestId?: string | undefined;
  /** The address of the section about this error in the API's reference. */
  help?: string | undefined;
  /** How long the API asks to wait before a repeat. */
  retryAfterMs?: number | undefined;
  /**
   * Whether the search may have been charged although its answer did not arrive. Then repeat it under `idempotencyKey` within
   * 24 hours: if it was charged, the repeat returns the answer and costs nothing.
   */
  mayBeCharged: boolean;
  /** Whether a repeat can succeed. */
  canRepeat: boolean;
  cause?: unknown;
}

/** The key under which a call was sent, and how often. */
export interface Sent {
  idempotencyKey: string | undefined;
  attempts: number;
}

/** Any failure of a call. Its subclasses stand for one code each, and know the code's details. */
export class SerpmillError<Code extends string = string, Details extends object = object> extends Error {
  declare readonly code: Code;
  declare readonly details: Details;
  declare readonly status: Failure["status"];
  declare readonly requestId: Failure["requestId"];
  declare readonly help: Failure["help"];
  declare readonly retryAfterMs: Failure["retryAfterMs"];
  /** Whether the search may have been charged: see {@link Failure.mayBeCharged}. */
  declare readonly mayBeCharged: boolean;
  declare readonly canRepeat: boolean;
  declare readonly idempotencyKey: Sent["idempotencyKey"];
  declare readonly attempts: number;

  // `errorOf` makes each class for its code, and the API's document says which details belong to a code.
  constructor({ message, cause, ...facts }: Failure, sent: Sent) {
    super(message, cause === undefined ? {} : { cause });
    this.name = new.target.name;
    Object.assign(this, facts, sent);
  }
}

class CodedError<Code extends ApiError["code"]> extends SerpmillError<Code, DetailsOf<Code>> {}

export class BadRequestError extends CodedError<"bad_request"> {}
export class QueryRejectedError extends CodedError<"query_rejected"> {}
export class UnauthenticatedError extends CodedError<"unauthenticated"> {}
export class PlanRequiredError extends CodedError<"plan_required"> {}
/** `details` say what ran out: `availableMils` and `topupUrl`, or the `limitMils` of a `period` that renews at `renewsAt`. */
export class OutOfCreditsError extends CodedError<"out_of_credits"> {}
export class RateLimitedError extends CodedError<"rate_limited"> {}
export class InternalError extends CodedError<"internal_error"> {}
export class NotImplementedError extends CodedError<"not_implemented"> {}
export class EngineError extends CodedError<"engine_error"> {}
export class UnavailableError extends CodedError<"unavailable"> {}
export class EngineTimeoutError extends CodedError<"engine_timeout"> {}

/** No whole answer came: the connection failed, the time was up, or the answer was unreadable. */
export class LostReplyError extends SerpmillError<"lost_reply"> {}
/** The answer is not one of this API's. Usually the address leads to another server. */
export class UnexpectedReplyError extends SerpmillError<"unexpected_reply"> {}
/** The caller's signal ended the call. `cause` is its reason. */
export class AbortedError extends SerpmillError<"aborted"> {}
