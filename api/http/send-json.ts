import type { IncomingMessage, ServerResponse } from "node:http";
import { requestScopeOf } from "./request-scope.ts";

/** Answers with a body that is JSON already. */
export function sendJson(
  request: IncomingMessage,
  response: ServerResponse,
  status: number,
  body: string | Buffer,
): void {
  // The rest of an unread body would be taken for the next request, so the connection ends with this answer.
  if (!request.complete || requestScopeOf(response).draining.aborted) response.setHeader("Connection", "close");
  response.statusCode = status;
  response.setHeader("Content-Type", "application/json; charset=utf-8");
  response.setHeader("Content-Length", Buffer.byteLength(body));
  response.end(body);
}
