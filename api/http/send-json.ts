import type { IncomingMessage, ServerResponse } from "node:http";
import type { RateWindow } from "../../shared/credits/admit.ts";
import type { Plan } from "../../shared/credits/plans.ts";
import { requestScopeOf } from "./request-scope.ts";

/** Answers with a body that is JSON already. */
export function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  body: string | Buffer,
): void {
  response.statusCode = status;
  setJsonHeaders(request, response, Buffer.byteLength(body));
  response.end(body);
}

/** Sets the headers of an answer whose body is JSON of this length in bytes. */
export function setJsonHeaders(request: IncomingMessage, response: ServerResponse, length: number): void {
  // The rest of an unread body would be taken for the next request, so the connection ends with this answer.
  if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", length);
}

/** Sets the RateLimit headers (draft-ietf-httpapi-ratelimit-headers: q requests in w seconds, r left, t seconds to reset). */
export function setRateLimitHeaders(response: ServerResponse, plan: Plan, window: RateWindow): void {
  const left = Math.max(0, plan.windowLimit - window.used);
  response.setHeader("RateLimit-Policy", `"default";q=${plan.windowLimit};w=${plan.windowSeconds}`);
  response.setHeader("RateLimit", `"default";r=${left};t=${Math.ceil(window.leftMs / 1_000)}`);
}
