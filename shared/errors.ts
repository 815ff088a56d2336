import { z } from "zod";

/**
 * Every error that a caller can meet: its status, whether the same request may be sent again, and the sentence for
 * people. Callers switch on the code; what varies stands in `details`.
 */
export const errors = {
  bad_request: { status: 400, retry: false, says: "The request is not valid; details tells what was expected." },
  query_rejected: { status: 400, retry: false, says: "No configured provider can answer this query as it is asked." },
  unauthenticated: { status: 401, retry: false, says: "A valid bearer token is required." },
  plan_required: { status: 402, retry: false, says: "The organization's plan does not include this operation." },
  out_of_credits: { status: 402, retry: false, says: "The organization has too few credits for this search." },
  not_found: { status: 404, retry: false, says: "There is nothing at this path." },
  method_not_allowed: { status: 405, retry: false, says: "This path does not take that method." },
  rate_limited: { status: 429, retry: true, says: "Too many requests; try again after the given time." },
  internal_error: { status: 500, retry: true, says: "Something went wrong on our side; nothing was charged." },
  not_implemented: { status: 501, retry: false, says: "This engine is not implemented." },
  engine_error: { status: 502, retry: true, says: "The search provider failed; nothing was charged." },
  unavailable: { status: 503, retry: true, says: "The service cannot take this request right now; try again soon." },
  engine_timeout: {
    status: 504,
    retry: true,
    says: "No answer came within the deadline; nothing was charged, or the answer is kept under the Idempotency-Key.",
  },
} as const;

export type ErrorCode = keyof typeof errors;

/** What is told beside the code: JSON of the contract's `details` for that code. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** A refusal or failure that the caller is told about, whichever door the request came through. */
export class CallerError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(errors[code].says);
    this.name = "CallerError";
    this.code = code;
    this.details = details;
  }
}

/** What {@link errorBody} writes. */
export const errorBodySchema = z.strictObject({
  requestId: z.string(),
  error: z.strictObject({
    code: z.string().meta({ description: "What to switch on." }),
    message: z.string().meta({ description: "For people." }),
    details: z
      .record(z.string(), z.unknown())
      .meta({ description: "What varies, by code: field, reason, time to wait." }),
  }),
});

/** The body of every error: `{requestId, error: {code, message, details}}`. */
export function errorBody(requestId: string, code: ErrorCode, details: ErrorDetails = {}) {
  return { requestId, error: { code, message: errors[code].says, details } };
}
