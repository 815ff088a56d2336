import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { newId } from "../../shared/ids.ts";
import { errorBody } from "../../shared/errors.ts";
import { rawError } from "./send-error.ts";

const headBytesMax = 8 * 1024;
const headMsMax = 5_000;
// For head and body together. The time of the search itself does not count.
const requestMsMax = 8_000;
// Longer than load balancers keep idle connections, so that the load balancer closes first and never reuses a closed one.
const idleMsMax = 75_000;
// If the reader took some bytes in this time, Node waits once more, so a stalled reader is disconnected after a minute.
const stallMsMax = 30_000;

/**
 * The public HTTP server. Requests that Node itself rejects get an error body like all others, and slow senders and readers
 * are disconnected: a reader that takes none of the waiting bytes for `stallMs`. A stream without waiting bytes may be idle.
 */
export function createHttpServer(listener: RequestListener, stallMs = stallMsMax): Server {
  const server = createServer(
    {
      maxHeaderSize: headBytesMax,
      headersTimeout: headMsMax,
      requestTimeout: requestMsMax,
      keepAliveTimeout: idleMsMax,
      connectionsCheckingInterval: 500,
      requireHostHeader: false, // Checked by rejectUnsafeHeaders: Node would answer without a body.
    },
    listener,
  );
  server.maxHeadersCount = 0; // Checked by rejectUnsafeHeaders: Node would silently drop headers.
  server.prependListener("request", (_request, response) => {
    response.setTimeout(stallMs, () => {
      if (response.socket?.writableLength) response.destroy();
    });
  });
  server.on("clientError", rejectMalformed);
  server.on("checkExpectation", rejectExpectation);
  return server;
}

const rejections: Record<string, [status: number, phrase: string, reason: string]> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "headers_too_large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "request_too_slow"],
};

function rejectMalformed(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable || hasResponse(socket)) return void socket.destroy();
  const [status, phrase, reason] = rejections[error.code ?? ""] ?? [400, "Bad Request", "malformed_http"];
  socket.end(rawError(newId("req"), status, phrase, "bad_request", { reason }));
}

/** Whether a response has begun on this connection. A second head would corrupt it. */
function hasResponse(socket: Duplex): boolean {
  // Node keeps the current response on its socket under this name. There is no public API for it.
  const { _httpMessage } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  return _httpMessage?.headersSent ?? false;
}

function rejectExpectation(_request: IncomingMessage, response: ServerResponse): void {
  const requestId = newId("req");
  const body = JSON.stringify(errorBody(requestId, "bad_request", { reason: "expectation_unknown" }));
  response
    .writeHead(417, {
      "Content-Type": "application/json; charset=utf-8",
      "Content-Length": Buffer.byteLength(body),
      "Cache-Control": "no-store",
      "X-Request-Id": requestId,
      Connection: "close",
    })
    .end(body);
}
