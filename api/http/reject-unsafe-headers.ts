import type { IncomingMessage } from "node:http";
import { CallerError } from "../../shared/errors.ts";

const headersMax = 100;

/**
 * Refuses heads that Node lets through but that two servers in a row could read differently (request smuggling), and
 * more headers than any honest client sends.
 * @throws {CallerError} `bad_request` with the reason.
 */
export function rejectUnsafeHeaders(request: IncomingMessage): void {
  if (request.rawHeaders.length / 2 > headersMax) throw refused("too_many_headers");
  if (request.headersDistinct.host?.length !== 1) throw refused("one_host_header_expected");
  const encoding = request.headers["transfer-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "chunked") throw refused("transfer_encoding_not_chunked");
}

const refused = (reason: string) => new CallerError("bad_request", { reason });
