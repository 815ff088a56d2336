import type { IncomingMessage } from "node:http";
import { CallerError } from "../../shared/errors.ts";

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
