import type { IncomingMessage, ServerResponse } from "node:http";
import { type CallerError, errorBody, type ErrorCode, errors } from "../../shared/errors.ts";
import { newId } from "../../shared/ids.ts";
import { hasBearerToken } from "./request-headers.ts";
import { type ErrorForm, requestScopeOf } from "./request-scope.ts";
import { securityHeadersOf } from "./security-headers.ts";
import { sendJson } from "./send-json.ts";

/** The challenge of a 401 to a request without a token. */
const bearerChallenge = 'Bearer realm="serpmill"';

/** Answers with an error: the body that all errors share or the form of the request's scope, and the headers of its status. */
export function sendError(request: IncomingMessage, response: ServerResponse, error: CallerError): void {
  const { requestId, route, errorForm = ownForm } = requestScopeOf(response);
  const { status, body } = errorForm(error, requestId);
  if (errors[error.code].status === 401) {
    response.setHeader("WWW-Authenticate", challenge(request, error));
  }
  const seconds = retryAfterSeconds(error);
  if (seconds !== undefined) response.setHeader("Retry-After", seconds);
  // For the callers of the HTTP API, and those who looked for it on an unknown path. Agents and pages have texts of their own.
  if (errorForm === ownForm && (route === "none" || route.startsWith("/v1/")))
    response.setHeader("Link", helpLinkOf(error.code));
  sendJson(request, response, status, JSON.stringify(body));
}

const ownForm: ErrorForm = ({ code, details }, requestId) => {
  return { status: errors[code].status, body: errorBody(requestId, code, details) };
};

/** What a 401 asks for (RFC 6750, section 3). */
function challenge(request: IncomingMessage, { details: { scope } }: CallerError): string {
  if (typeof scope === "string") return `${bearerChallenge}, error="insufficient_scope", scope="${scope}"`;
  if (!hasBearerToken(request)) return bearerChallenge;
  return `${bearerChallenge}, error="invalid_token", error_description="The token is unknown, expired or revoked"`;
}

/** The error's `details.retryAfterMs` in whole seconds, rounded up, at least 1; undefined where it has none. */
export function retryAfterSeconds({ details: { retryAfterMs } }: CallerError): number | undefined {
  return typeof retryAfterMs === "number" ? Math.max(1, Math.ceil(retryAfterMs / 1_000)) : undefined;
}

/** The `bad_request` of a request that Node rejects, so that it has no request scope. `reason` is for its details. */
export function rejection(reason: string, isSecure: boolean): { headers: Record<string, string>; body: string } {
  const requestId = newId("req");
  const body = JSON.stringify(errorBody(requestId, "bad_request", { reason }));
  const headers = {
    Connection: "close",
    "Content-Type": "application/json; charset=utf-8",
    "Content-Length": String(Buffer.byteLength(body)),
    "Cache-Control": "no-store",
    Link: helpLinkOf("bad_request"),
    "X-Request-Id": requestId,
    ...securityHeadersOf(isSecure),
  };
  return { headers, body };
}

/**
 * The heading of an error's section in the reference: `429 rate limited (retry)`. Its search finds the status and the word
 * `retry`. The code is in words, because the reference takes two underscores for emphasis.
 */
export function helpHeadingOf(code: ErrorCode): string {
  const { status, retry } = errors[code];
  return `${status} ${code.replaceAll("_", " ")} (${retry ? "retry" : "no retry"})`;
}

/** The path of that section, as the reference makes anchors of its headings. */
export function helpPathOf(code: ErrorCode): string {
  const slug = helpHeadingOf(code).replace(/[()]/g, "").replaceAll(" ", "-");
  return `/docs#description/${slug}`;
}

/** The header `Link` of an error's answer. The address is relative, so it is right behind any proxy. */
export const helpLinkOf = (code: ErrorCode) => `<${helpPathOf(code)}>; rel="help"`;
