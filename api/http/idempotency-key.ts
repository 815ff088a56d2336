import type { IncomingMessage } from "node:http";
import { z } from "zod";
import { CallerError } from "../../shared/errors.ts";

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
