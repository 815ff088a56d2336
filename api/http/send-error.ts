import type { IncomingMessage, ServerResponse } from "node:http";
import { type CallerError, type ErrorCode, type ErrorDetails, errorBody, errors } from "../../shared/errors.ts";
import { hasBearerToken } from "./bearer-token.ts";
import { requestScopeOf } from "./request-scope.ts";
import { sendJson } from "./send-json.ts";

/** Answers with an error: the body that all errors share, and the headers that belong to its status. */
export function sendError(request: IncomingMessage, response: ServerResponse, error: CallerError): void {
  const { status } = errors[error.code];
  if (status === 401) {
    response.setHeader("WWW-Authenticate", hasBearerToken(request) ? 'Bearer error="invalid_token"' : "Bearer");
  }
  const seconds = retryAfterSeconds(error);
  if (seconds !== undefined) response.setHeader("Retry-After", seconds);
  const { requestId } = requestScopeOf(response);
  sendJson(request, response, status, JSON.stringify(errorBody(requestId, error.code, error.details)));
}

/** The error's `details.retryAfterMs` in whole seconds, rounded up, at least 1; undefined where it has none. */
export function retryAfterSeconds({ details: { retryAfterMs } }: CallerError): number | undefined {
  return typeof retryAfterMs === "number" ? Math.max(1, Math.ceil(retryAfterMs / 1_000)) : undefined;
}

/** A whole HTTP/1.1 response with an error, for the socket of a request that Node rejected before it had a response object. */
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
