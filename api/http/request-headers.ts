import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { CallerError } from "../../shared/errors.ts";

const bearer = /^bearer ([^ ]+)$/i;

/** The token of a request with exactly one Authorization header of exactly the form `Bearer <token>`. */
export function readBearerToken(request: IncomingMessage): string | undefined {
  const headers = request.headersDistinct.authorization ?? [];
  return headers.length === 1 ? bearer.exec(headers[0] ?? "")?.[1] : undefined;
}

/** The token of a request in the header `X-API-Key`, if there is exactly one. */
export function readApiKey(request: IncomingMessage): string | undefined {
  const headers = request.headersDistinct["x-api-key"] ?? [];
  return headers.length === 1 ? headers[0] : undefined;
}

/** Whether a request sent a token, valid or not. A 401 then carries `error="invalid_token"` (RFC 6750, section 3.1). */
export const hasBearerToken = (request: IncomingMessage): boolean => bearer.test(request.headers.authorization ?? "");

/** Visible ASCII characters. */
export const idempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]+$/);

export const isIdempotencyKey = (text: string) => idempotencyKey.safeParse(text).success;

/** The Idempotency-Key of a request, if any. @throws {CallerError} `bad_request` if it is malformed or sent twice. */
export function readIdempotencyKey(request: IncomingMessage): string | undefined {
  const headers = request.headersDistinct["idempotency-key"];
  if (headers === undefined) return undefined;
  const [key = ""] = headers;
  if (headers.length === 1 && isIdempotencyKey(key)) return key;
  const message = "Expected one header of 1 to 255 visible ASCII characters.";
  throw new CallerError("bad_request", { issues: [{ path: "Idempotency-Key", message }] });
}

const headersMax = 100;

/**
 * Rejects headers that Node accepts but that a proxy and this server could interpret differently (request smuggling), and
 * requests with more headers than any legitimate client sends.
 * @throws {CallerError} `bad_request` with a `details.reason`.
 */
export function rejectUnsafeHeaders(request: IncomingMessage): void {
  if (request.rawHeaders.length / 2 > headersMax) throw badRequest("too_many_headers");
  if (request.headersDistinct.host?.length !== 1) throw badRequest("one_host_header_expected");
  const encoding = request.headers["transfer-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") throw badRequest("transfer_encoding_not_chunked");
}

const badRequest = (reason: string) => new CallerError("bad_request", { reason });
