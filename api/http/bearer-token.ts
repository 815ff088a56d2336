import type { IncomingMessage } from "node:http";

const bearer = /^bearer ([^ ]+)$/i;

/** The token of a request with exactly one Authorization header of exactly the form `Bearer <token>`. */
export function readBearerToken(request: IncomingMessage): string | undefined {
  const headers = request.headersDistinct.authorization ?? [];
  return headers.length === 1 ? bearer.exec(headers[0] ?? "")?.[1] : undefined;
}

/** Whether a request sent a token, valid or not. A 401 then carries `error="invalid_token"` (RFC 6750, section 3.1). */
export function hasBearerToken(request: IncomingMessage): boolean {
  return bearer.test(request.headers.authorization ?? "");
}
