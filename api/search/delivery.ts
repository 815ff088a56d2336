import type { ServerResponse } from "node:http";
import type { Metrics } from "../../shared/metrics.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { CallerDisconnected } from "../errors.ts";
import type { DeliveryConfirmations } from "./delivery-confirmations.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * Delivery of a search's answer. A charge is recorded as undelivered and ends in one of three states:
 *
 *   undelivered ── all bytes are handed to the caller's socket ──▶ delivered         the charge is final
 *        ├── disconnected, too slow or too late, without a key ──▶ reversed          the mils are given back
 *        └── the same, with an Idempotency-Key ─────────────────▶ owed to the key   the charge stands; a repeat of the
 *                                                                                    request gets the answer for free
 *
 * If this process dies first, the reconciler reverses the charge: in doubt the caller keeps the mils.
 */
export class Delivery {
  readonly #confirmations: DeliveryConfirmations;
  readonly #metrics: Metrics;

  constructor(parts: { confirmations: DeliveryConfirmations; metrics: Metrics }) {
    this.#confirmations = parts.confirmations;
    this.#metrics = parts.metrics;
  }

  /**
   * Begins the delivery of a request's answer, which the caller of this function writes to the response next. The charge
   * is confirmed or reversed when the response closes.
   * @throws {CallerError} `engine_timeout` if it is too late, {@link CallerDisconnected}: the answer must not be written.
   */
  begin(request: SearchRequest, response: ServerResponse): void {
    const { deadline, disconnected } = request;
    if (response.closed || response.destroyed || disconnected.aborted) {
      this.#fail(request, "caller_gone");
      throw new CallerDisconnected();
    }
    if (deadline.remainingMs() < -protocolTimes.deliveryFenceMs) {
      this.#fail(request, "too_late");
      throw deadline.error();
    }
    const slow = setTimeout(() => response.destroy(), protocolTimes.deliveryTimeoutMs);
    response.once("close", () => {
      clearTimeout(slow);
      // An MCP caller that cancelled does not get the answer, although its connection may live on.
      if (!response.writableFinished || disconnected.aborted) return this.#fail(request, "caller_gone");
      this.#metrics.deliveries.inc({ outcome: "delivered" });
      if (!request.key) this.#confirmations.confirm(request.requestId);
    });
  }

  #fail({ requestId, caller, key }: SearchRequest, outcome: "caller_gone" | "too_late"): void {
    this.#metrics.deliveries.inc({ outcome });
    if (key) return;
    const reason = outcome === "too_late" ? "engine_timeout" : "caller_gone";
    this.#confirmations.reverse({ organizationId: caller.organizationId, requestId }, reason);
  }
}
