import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type Log, throttled } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { createServer } from "../../shared/process/http.ts";
import { rejection } from "./send-error.ts";

const headBytesMax = 8 * 1024;
/** Of a body that is not read yet. Sent in chunks of one byte, each byte takes some 270. */
const unreadBytesMax = 16 * 1024;
const connectionsMax = 10_000;
const makeRoomEveryMs = 1_000;
// Longer than load balancers keep idle connections, so that the load balancer closes first and never reuses a closed one.
const idleMsMax = 75_000;
// Scanners send malformed requests all day. The metric has their number.
const refusalLogPauseMs = 60_000;

/** How long the rest of a body is read that came behind its answer. */
const restMs = 2_000;

/** Requests that may wait on a connection for the answers before them. A caller that pipelines more is disconnected. */
export const pipelinedMax = 8;

/** Time limits of slow clients, in milliseconds. A slow sender is disconnected within 10 s. */
export const clientLimits = {
  headMs: 5_000,
  /** For head and body together. The time of the search itself does not count. */
  requestMs: 8_000,
  /** How often the two limits above are checked. */
  checkIntervalMs: 500,
  /** If the reader took some bytes in this time, Node waits once more: a stalled reader is disconnected after a minute. */
  stallMs: 30_000,
  /** For all bytes of an answer, once its last one was written. A reader that took one now and then would keep it in memory. */
  takeMs: 60_000,
};

/**
 * The public HTTP server. Requests that Node itself rejects get an error body like all others, and slow senders and readers
 * are disconnected: a reader when it takes none of the waiting bytes for `stallMs`, or not all of an answer that has ended in `takeMs`. A
 * stream without waiting bytes may be idle.
 * @param options.isSecure whether every caller is known to come by https; what else says so is in a head that was rejected.
 * @param options.refused sees each request that Node itself rejects. Callers decide how often that is.
 */
export function createHttpServer(
  listener: RequestListener,
  {
    limits = clientLimits,
    isSecure = false,
    refused = () => undefined,
  }: { limits?: typeof clientLimits; isSecure?: boolean; refused?: (refusal: ParserRefusal) => void } = {},
): Server {
  const server = createServer(
    {
      maxHeaderSize: headBytesMax,
      highWaterMark: unreadBytesMax,
      headersTimeout: limits.headMs,
      requestTimeout: limits.requestMs,
      keepAliveTimeout: idleMsMax,
      connectionsCheckingInterval: limits.checkIntervalMs,
      requireHostHeader: false, // Checked by rejectUnsafeHeaders: Node would answer without a body.
    },
    oneAtATime((request, response) => {
      disconnectSlowReader(response, limits);
      takeRestOfBody(request, response);
      listener(request, response);
    }),
  );
  server.maxHeadersCount = 0; // Checked by rejectUnsafeHeaders: Node would silently drop headers.
  server.maxConnections = connectionsMax;
  server.on("drop", makesRoom(server));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => {
    const refusal = refusalOf(error);
    // Behind the last answer, a body that ends too early is refused nothing.
    if (refusal && socket.writable) refused(refusal);
    rejectMalformed(refusal, socket, isSecure);
  });
  server.on(
    "checkExpectation",
    oneAtATime((_request, response) => {
      const { headers, body } = rejection("expectation_unknown", isSecure);
      response.writeHead(417, headers).end(body);
    }),
  );
  return server;
}

/** A connection beyond the bound is dropped. Idle ones are closed then, so that the next new one finds a place. */
function makesRoom(server: Server): () => void {
  let madeAtMs = Number.NEGATIVE_INFINITY;
  return () => {
    // Looks at every connection, so not for every one that is dropped.
    if (performance.now() - madeAtMs < makeRoomEveryMs) return;
    madeAtMs = performance.now();
    server.closeIdleConnections();
  };
}

function disconnectSlowReader(response: ServerResponse, { stallMs, takeMs }: typeof clientLimits): void {
  response.setTimeout(stallMs, () => {
    if (response.socket?.writableLength) response.destroy();
  });
  response.once("prefinish", () => {
    if (response.closed) return; // Its caller has left before, and the timer would keep it in memory.
    const timer = setTimeout(() => response.destroy(), takeMs).unref();
    response.once("close", () => clearTimeout(timer));
  });
}

/**
 * Ends a connection whose request was answered before all of its body came: it is closed at first for writing, and what still comes
 * is read and dropped. Closed for both, it would be reset, and a caller that is still sending might not get the answer.
 */
function takeRestOfBody(request: IncomingMessage, response: ServerResponse): void {
  const { socket } = request;
  response.once("prefinish", () => {
    if (request.complete) return;
    // Node calls this for the last answer of a connection.
    socket.destroySoon = () => {
      socket.end();
      request.resume();
      const timer = setTimeout(() => socket.destroy(), restMs).unref();
      socket.once("close", () => clearTimeout(timer));
    };
  });
}

const statuses = {
  malformed_http: [400, "Bad Request"],
  headers_too_large: [431, "Request Header Fields Too Large"],
  request_too_slow: [408, "Request Timeout"],
} as const;

/** A request that Node itself rejected. The code is Node's, such as `HPE_INVALID_METHOD`; nothing in it is from the caller. */
interface ParserRefusal {
  reason: keyof typeof statuses;
  code: string;
}

const reasons: Record<string, ParserRefusal["reason"]> = {
  HPE_HEADER_OVERFLOW: "headers_too_large",
  ERR_HTTP_REQUEST_TIMEOUT: "request_too_slow",
};

/** @returns undefined for an error of the connection, which refuses nothing. */
function refusalOf({ code = "" }: NodeJS.ErrnoException): ParserRefusal | undefined {
  return /^(HPE|ERR_HTTP)_/.test(code) ? { reason: reasons[code] ?? "malformed_http", code } : undefined;
}

/** Counts requests that Node itself rejected, and logs at most one a minute: they have no line of their own in the log. */
export function openParserRefusals({ metrics, log }: { metrics: Metrics; log: Log }): (refusal: ParserRefusal) => void {
  const logOne = throttled<ParserRefusal>(refusalLogPauseMs, ({ reason, code }, leftOut) =>
    log.info({ reason, code, leftOut }, "the HTTP parser refused a request"),
  );
  return (refusal) => {
    metrics.parserRefusals.inc({ reason: refusal.reason });
    logOne(refusal);
  };
}

function rejectMalformed(refusal: ParserRefusal | undefined, socket: Duplex, isSecure: boolean): void {
  if (!refusal || !socket.writable || hasResponse(socket)) return void socket.destroy();
  const [status, phrase] = statuses[refusal.reason];
  const { headers, body } = rejection(refusal.reason, isSecure);
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  socket.end([`HTTP/1.1 ${status} ${phrase}`, ...lines, "", body].join("\r\n"));
}

/** Whether a response has begun on this connection. A second head would corrupt it. */
function hasResponse(socket: Duplex): boolean {
  // Node keeps the current response on its socket under this name. There is no public API for it.
  const { _httpMessage } = socket as Duplex & { _httpMessage?: ServerResponse | null };
  return _httpMessage?.headersSent ?? false;
}

/** How many requests wait on a connection. */
const waiting = new WeakMap<Socket, number>();

/**
 * Handles the requests of a connection one after the other. Node emits pipelined requests as soon as it has read them, and
 * keeps what is written to their responses in memory until their turn comes; even a response that was destroyed meanwhile
 * would still be sent. Here a request begins once the answer before it was sent and its own response has the socket. A
 * request that still waits when its connection ends never begins.
 */
function oneAtATime(listener: RequestListener): RequestListener {
  return (request, response) => {
    const { socket } = request;
    if (socket.destroyed) return;
    if (hasSocket(response)) listener(request, response);
    else if (count(socket, 1) > pipelinedMax) socket.destroy();
    else {
      response.once("socket", () => {
        count(socket, -1);
        // In a turn of its own, after the end of the answer before it.
        process.nextTick(() => {
          if (socket.writable) listener(request, response);
        });
      });
    }
  };
}

// The types of Node do not say that a response has no socket before its turn.
const hasSocket = ({ socket }: Pick<ServerResponse, "socket">): boolean => socket !== null;

function count(socket: Socket, change: number): number {
  const requests = (waiting.get(socket) ?? 0) + change;
  waiting.set(socket, requests);
  return requests;
}
