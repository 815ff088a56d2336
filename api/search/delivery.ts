import type { IncomingMessage, ServerResponse } from "node:http";
import type { ApiContext } from "../context.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { remainingMs, type SearchRequest } from "./search-request.ts";
import { type DeliverableAnswer, timedOut } from "./search.ts";
import { recordError } from "../errors.ts";
import { sendError } from "../http/send-error.ts";
import { sendJson } from "../http/send-json.ts";

/** Hands an answer to the caller's socket as it is. */
export function deliver(
  context: ApiContext,
  call: SearchRequest,
  answer: DeliverableAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const begun = beginDelivery(context, call, response);
  if (begun === "begun") return sendJson(request, response, 200, answer.body);
  if (begun === "too_late") {
    const error = timedOut(context);
    recordError(response, error);
    sendError(request, response, error);
  }
}

/**
 * Begins the delivery of a search's answer, in whatever form it is written to the response next, and records how that
 * went once the response is closed: delivered, where all of it was handed to the caller's socket. Only a charge made by
 * this very request without an Idempotency-Key can be given back; what was paid under a key is owed to the key.
 * @returns `begun`, or why the answer must not be written any more.
 */
export function beginDelivery(
  context: ApiContext,
  call: SearchRequest,
  response: ServerResponse,
): "begun" | "caller_gone" | "too_late" {
  const reversible = call.idempotencyKey === undefined;
  const charge = { organizationId: call.caller.organizationId, requestId: call.requestId };
  const failed = (outcome: "caller_gone" | "too_late") => {
    context.metrics.deliveries.inc({ outcome });
    if (reversible) context.deliveries.reverse(charge, outcome === "too_late" ? "engine_timeout" : "caller_gone");
    return outcome;
  };

  if (response.closed || response.destroyed || call.disconnected.aborted) return failed("caller_gone");
  if (remainingMs(context, call) < -protocolTimes.deliveryFenceMs) return failed("too_late");
  const slow = setTimeout(() => response.destroy(), protocolTimes.deliveryTimeoutMs);
  response.once("close", () => {
    clearTimeout(slow);
    // Whoever cancelled a search is gone too, although its connection may live on.
    if (!response.writableFinished || call.disconnected.aborted) {
      failed("caller_gone");
      return;
    }
    context.metrics.deliveries.inc({ outcome: "delivered" });
    if (reversible) context.deliveries.confirm(call.requestId);
  });
  return "begun";
}
