import type { ServerResponse } from "node:http";
import { newId } from "../../shared/ids.ts";
import type { ApiContext } from "../context.ts";

/** One request and its answer, as the log and the metrics know it. */
export class RequestScope {
  readonly requestId = newId("req");
  readonly receivedAtMs = performance.now();
  /** The route's path as it is declared, never what the caller sent: it is a metric's label. */
  route = "none";
  /** What the one log line tells beside method, route, status and time. */
  readonly logFields: Record<string, unknown> = {};
  /** Given once this process stops: from then on each answer ends its connection, also of a request that came before. */
  readonly draining: AbortSignal;

  constructor(draining: AbortSignal) {
    this.draining = draining;
  }
}

const exchanges = new WeakMap<ServerResponse, RequestScope>();

/** The exchange of a response. @throws where {@link openRequestScope} was not called for it. */
export function requestScopeOf(response: ServerResponse): RequestScope {
  const exchange = exchanges.get(response);
  if (!exchange) throw new Error("the response has no exchange");
  return exchange;
}

/** Begins an exchange: the request id on the answer, one metric and one log line at its end. */
export function openRequestScope(context: ApiContext, response: ServerResponse): RequestScope {
  const exchange = new RequestScope(context.draining);
  exchanges.set(response, exchange);
  response.setHeader("X-Request-Id", exchange.requestId);
  response.setHeader("Cache-Control", "no-store");
  response.once("close", () => {
    const ms = performance.now() - exchange.receivedAtMs;
    const { route, requestId, logFields: notes } = exchange;
    // 499: the caller hung up before there was an answer; the status is only for us.
    const status = response.headersSent ? response.statusCode : 499;
    context.metrics.httpSeconds.observe({ route, status }, ms / 1_000);
    const level = status >= 500 ? "warn" : "info";
    context.log[level]({ requestId, route, status, ms: Math.round(ms * 10) / 10, ...notes }, "request");
  });
  return exchange;
}
