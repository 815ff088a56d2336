import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { newId } from "../../shared/ids.ts";
import { errorBody } from "../../shared/errors.ts";
import { rawError } from "./send-error.ts";

const headBytesMax = 8 * 1024;
const headMsMax = 5_000;
// Head and body together; the time that a search takes is not part of it.
const requestMsMax = 8_000;
// Longer than load balancers keep idle connections, so that they are the ones who close.
const idleMsMax = 75_000;
// Where some bytes were still taken Node waits once more for the rest: a minute at most.
const stallMsMax = 30_000;

/**
 * The public server: Node's own refusals answer in the API's shape, and no sender or reader can be slower than its bounds.
 * Whoever takes nothing of what waits for them for `stallMs` is gone; while nothing waits, as in a quiet stream, none is slow.
 */
export function createHttpServer(listener: RequestListener, stallMs = stallMsMax): Server {
  const server = createServer(
    {
      maxHeaderSize: headBytesMax,
      headersTimeout: headMsMax,
      requestTimeout: requestMsMax,
      keepAliveTimeout: idleMsMax,
      connectionsCheckingInterval: 500,
      requireHostHeader: false, // Asked for by us: Node would refuse without a body.
    },
    listener,
  );
  server.maxHeadersCount = 0; // Counted by us: Node would drop what is over silently.
  server.prependListener("request", (_request, response) => {
    response.setTimeout(stallMs, () => {
      if (response.socket?.writableLength) response.destroy();
    });
  });
  server.on("clientError", refuse);
  server.on("checkExpectation", refuseExpectation);
  return server;
}

const refusals: Record<string, [status: number, phrase: string, reason: string]> = {
  HPE_HEADER_OVERFLOW: [431, "Request Header Fields Too Large", "headers_too_large"],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "Request Timeout", "request_too_slow"],
};

function refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
  if (error.code === "ECONNRESET" || !socket.writable || hasAnswered(socket)) return void socket.destroy();
  const [status, phrase, reason] = refusals[error.code ?? ""] ?? [400, "Bad Request", "malformed_http"];
  socket.end(rawError(newId("req"), status, phrase, "bad_request", { reason }));
}

/** Whether an answer is on its way on this connection already; a second head would corrupt it. */
function hasAnswered(socket: Duplex): boolean {
  // Node keeps the response in progress on its socket under this name; there is no public way to it.
  const { _httpMessage } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  return _httpMessage?.headersSent ?? false;
}

function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
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
