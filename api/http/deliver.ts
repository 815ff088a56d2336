import type { IncomingMessage, ServerResponse } from "node:http";
import { CallerError } from "../../shared/errors.ts";
import type { ApiContext } from "../context.ts";
import { remainingMs, type SearchCall } from "../search-call.ts";
import type { SearchAnswer } from "../search.ts";
import { sendError, sendJson } from "./send-error.ts";

// A reader so slow that it does not take one page in this time counts as gone.
const deliveryMsMax = 10_000;
// No 200 is begun later than this after its deadline: long before the reconciler may give the charge back.
const fenceMs = 2_000;

/**
 * Hands an answer to the caller's socket and records how that went. Only a charge made by this very request without an
 * Idempotency-Key can be given back; what was paid under a key is owed to the key.
 */
export function deliver(
  context: ApiContext,
  call: SearchCall,
  answer: SearchAnswer,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const reversible = call.idempotencyKey === undefined;
  const charge = { organizationId: call.caller.organizationId, requestId: call.requestId };
  const failed = (outcome: "caller_gone" | "too_late") => {
    context.metrics.deliveries.inc({ outcome });
    if (reversible) context.deliveries.reverse(charge, outcome === "too_late" ? "engine_timeout" : "caller_gone");
  };

  if (response.closed || response.destroyed) return failed("caller_gone");
  if (remainingMs(context, call) < -fenceMs) {
    failed("too_late");
    const timeoutMs = context.config.SEARCH_DEADLINE_MS;
    return sendError(request, response, new CallerError("engine_timeout", { timeoutMs }));
  }
  const slow = setTimeout(() => response.destroy(), deliveryMsMax);
  response.once("close", () => {
    clearTimeout(slow);
    if (!response.writableFinished) return failed("caller_gone");
    context.metrics.deliveries.inc({ outcome: "delivered" });
    if (reversible) context.deliveries.confirm(call.requestId);
  });
  sendJson(request, response, 200, answer.body);
}
