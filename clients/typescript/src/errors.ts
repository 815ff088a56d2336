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
export class SerpmillError extends Error {
  declare readonly code: string;
  declare readonly details: object;
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
    this.name = new.target === SerpmillError ? "SerpmillError" : nameOf(facts.code);
    Object.assign(this, facts, sent);
  }
}

/** `BadRequestError` for `bad_request`. Not the name of the class, which a bundler may shorten. */
function nameOf(code: string): string {
  const words = code.replace(/_error$/, "").split("_");
  return `${words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("")}Error`;
}

class ErrorOf<Code extends ApiError["code"]> extends SerpmillError {
  declare readonly code: Code;
  declare readonly details: DetailsOf<Code>;
}

export class BadRequestError extends ErrorOf<"bad_request"> {}
export class QueryRejectedError extends ErrorOf<"query_rejected"> {}
export class UnauthenticatedError extends ErrorOf<"unauthenticated"> {}
export class PlanRequiredError extends ErrorOf<"plan_required"> {}
/** `details` say what ran out: `availableMils` and `topupUrl`, or the `limitMils` of a `period` that renews at `renewsAt`. */
export class OutOfCreditsError extends ErrorOf<"out_of_credits"> {}
export class RateLimitedError extends ErrorOf<"rate_limited"> {}
export class InternalError extends ErrorOf<"internal_error"> {}
export class NotImplementedError extends ErrorOf<"not_implemented"> {}
export class EngineError extends ErrorOf<"engine_error"> {}
export class UnavailableError extends ErrorOf<"unavailable"> {}
export class EngineTimeoutError extends ErrorOf<"engine_timeout"> {}

/** No whole answer came: the connection failed, the time was up, or the answer was unreadable. */
export class LostReplyError extends SerpmillError {
  declare readonly code: "lost_reply";
  /** The beginning of what came in place of an answer. */
  declare readonly details: { text?: string };
}
/** The answer is not one of this API's. Usually the address leads to another server. */
export class UnexpectedReplyError extends SerpmillError {
  declare readonly code: "unexpected_reply";
  /** The beginning of the answer. */
  declare readonly details: { text: string };
}
/** The caller's signal ended the call. `cause` is its reason. */
export class AbortedError extends SerpmillError {
  declare readonly code: "aborted";
  declare readonly details: Record<string, never>;
}
