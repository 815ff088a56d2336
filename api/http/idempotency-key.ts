import type { IncomingMessage } from "node:http";
import { CallerError } from "../../shared/errors.ts";

const visibleAscii = /^[\x21-\x7e]{1,255}$/;

/** The Idempotency-Key of a request, if it has one. @throws {CallerError} `bad_request` for a malformed or second one. */
export function readIdempotencyKey(request: IncomingMessage): string | undefined {
  const given = request.headersDistinct["idempotency-key"];
  if (given === undefined) return undefined;
  const [key = ""] = given;
  if (given.length === 1 && visibleAscii.test(key)) return key;
  const message = "expected one header of 1 to 255 visible ASCII characters";
  throw new CallerError("bad_request", { issues: [{ path: "Idempotency-Key", message }] });
}
