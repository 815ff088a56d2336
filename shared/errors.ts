import { z } from "zod";
import { errorText } from "./errors/error-messages.ts";

/**
 * The catalogue of errors: HTTP status, whether a retry of the same request can succeed, and what the code means, for people.
 * Callers switch on the code; `details` carries what varies, and the message says it (`error-messages.ts`).
 */
export const errors = {
  bad_request: { status: 400, retry: false, message: "The request is not valid; see details." },
  query_rejected: { status: 400, retry: false, message: "No configured provider can run this query as requested." },
  unauthenticated: {
    status: 401,
    retry: false,
    message: "A valid token is required in the header `Authorization: Bearer smk_…`. Tokens may expire or be revoked.",
  },
  plan_required: { status: 402, retry: false, message: "The organization's plan does not include this operation." },
  out_of_credits: {
    status: 402,
    retry: false,
    message:
      "The organization's credit, or a spending limit of the organization or the token, does not cover this search.",
  },
  not_found: { status: 404, retry: false, message: "There is no such path." },
  method_not_allowed: {
    status: 405,
    retry: false,
    message: "This path does not support that method. The header `Allow` lists those that it does.",
  },
  rate_limited: { status: 429, retry: true, message: "Too many requests. Retry after the given time." },
  internal_error: { status: 500, retry: true, message: "Internal error. Nothing was charged." },
  not_implemented: { status: 501, retry: false, message: "This engine is not implemented." },
  engine_error: { status: 502, retry: true, message: "The search provider failed. Nothing was charged." },
  unavailable: {
    status: 503,
    retry: true,
    message: "The service cannot take this request right now. Retry after the given time.",
  },
  engine_timeout: {
    status: 504,
    retry: true,
    message:
      "No answer before the deadline. Nothing was charged, unless an Idempotency-Key was sent: then the answer may be kept under it.",
  },
} as const;

export type ErrorCode = keyof typeof errors;

/** The `details` of an error. Their fields depend on the code; error-schemas.ts has them. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/** The message of an error, for people: it says what is wrong, as far as the details tell. */
export function messageOf(code: ErrorCode, details: ErrorDetails): string {
  return errorText(code, details) ?? errors[code].message;
}

/** An error that goes to the caller, over REST, MCP or the account pages. */
export class CallerError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, details: ErrorDetails = {}) {
    super(messageOf(code, details));
    this.name = "CallerError";
    this.code = code;
    this.details = details;
  }
}

/** The schema of {@link errorBody}. */
export const errorBodySchema = z.strictObject({
  requestId: z.string(),
  error: z.strictObject({
    code: z.string().describe("The error code, for programs."),
    message: z.string().describe("A message for people."),
    details: z.record(z.string(), z.unknown()).describe("Fields that depend on the code."),
  }),
});

/** The body of every error: `{requestId, error: {code, message, details}}`. */
export function errorBody(requestId: string, code: ErrorCode, details: ErrorDetails = {}) {
  return { requestId, error: { code, message: messageOf(code, details), details } };
}
