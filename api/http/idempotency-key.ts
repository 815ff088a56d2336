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

/** The Idempotency-Key of a request, if it has one. @throws {CallerError} `bad_request` for a malformed or second one. */
export function readIdempotencyKey(request: IncomingMessage): string | undefined {
  const given = request.headersDistinct["idempotency-key"];
  if (given === undefined) return undefined;
  const [key = ""] = given;
  if (given.length === 1 && isIdempotencyKey(key)) return key;
  const message = "expected one header of 1 to 255 visible ASCII characters";
  throw new CallerError("bad_request", { issues: [{ path: "Idempotency-Key", message }] });
}
