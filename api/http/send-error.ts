import type { IncomingMessage, ServerResponse } from "node:http";
import { CallerError, type ErrorCode, type ErrorDetails, errorBody, errors } from "../../shared/errors.ts";
import { hasToken } from "../authenticate.ts";
import { RateLimited } from "../errors.ts";
import { SearchFailed } from "../search/search-request.ts";
import { setRateLimitHeaders } from "./rate-limit-headers.ts";
import { requestScopeOf } from "./request-scope.ts";

/** Answers with an error, in the one shape and with the headers that belong to its status. */
export function sendError(request: IncomingMessage, response: ServerResponse, error: CallerError): void {
  const { requestId, logFields: notes } = requestScopeOf(response);
  Object.assign(notes, errorLogFields(error));
  const { status } = errors[error.code];
  if (status === 401) {
    response.setHeader("WWW-Authenticate", hasToken(request) ? 'Bearer error="invalid_token"' : "Bearer");
  }
  if (error instanceof RateLimited) setRateLimitHeaders(response, error.plan, error.window);
  const seconds = retryAfterSeconds(error);
  if (seconds !== undefined) response.setHeader("Retry-After", seconds);
  sendJson(request, response, status, JSON.stringify(errorBody(requestId, error.code, error.details)));
}

/** After how many whole seconds to come back, where the error says so. */
export function retryAfterSeconds({ details: { retryAfterMs } }: CallerError): number | undefined {
  return typeof retryAfterMs === "number" ? Math.max(1, Math.ceil(retryAfterMs / 1_000)) : undefined;
}

/** What the log line tells of an error. */
export function errorLogFields(error: CallerError) {
  const { code, details } = error;
  return {
    outcome: code,
    ...(error instanceof SearchFailed && error.trace),
    ...(typeof details.reason === "string" && { reason: details.reason }),
  };
}

/** Answers with a body that is JSON already. */
export function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  body: string | Buffer,
): void {
  // What was not read of a request is not read any more: the connection ends with this answer.
  if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.statusCode = status;
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.end(body);
}

/** Turns whatever was thrown into what the caller is told; a defect of ours is logged and told as no more than that. */
export function callerErrorOf(error: unknown, onDefect: (error: unknown) => void): CallerError {
  if (error instanceof CallerError) return error;
  onDefect(error);
  return new CallerError("internal_error");
}

/** An error answered below Express, where no response object is left: the same shape, written by hand. */
export function rawError(
  requestId: string,
  status: number,
  phrase: string,
  code: ErrorCode,
  details: ErrorDetails,
): string {
  const body = JSON.stringify(errorBody(requestId, code, details));
  return [
    `HTTP/1.1 ${status} ${phrase}`,
    "Connection: close",
    "Content-Type: application/json; charset=utf-8",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Cache-Control: no-store",
    `X-Request-Id: ${requestId}`,
    "",
    body,
  ].join("\r\n");
}
