import type { ServerResponse } from "node:http";
import type { Metrics } from "../../shared/metrics.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { CallerDisconnected } from "../errors.ts";
import type { DeliveryConfirmations } from "./delivery-confirmations.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * Delivery of a search's answer. A charge is recorded as undelivered and ends in one of three states:
 *
 *   undelivered ── one whole copy of the answer is handed to the socket ──▶ delivered         the charge is final
 *        ├── disconnected, too slow or too late, without a key ───────────▶ reversed          the mils are given back
 *        └── the same, with an Idempotency-Key ──────────────────────────▶ owed to the key   the charge stands; a repeat
 *                                                                                             of the request is free
 *
 * The body of a REST answer is one copy. An MCP answer has two, and the first is enough to use it. Where a charge is
 * reversed, the connection ends before a whole copy was handed over. If this process dies first, the reconciler reverses
 * the charge: in doubt the caller keeps the mils.
 */
export class Delivery {
  readonly #confirmations: Pick<DeliveryConfirmations, "confirm" | "reverse">;
  readonly #metrics: Pick<Metrics, "deliveries">;
  readonly #timeoutMs: number;

  constructor(parts: {
    confirmations: Pick<DeliveryConfirmations, "confirm" | "reverse">;
    metrics: Pick<Metrics, "deliveries">;
    timeoutMs?: number;
  }) {
    this.#confirmations = parts.confirmations;
    this.#metrics = parts.metrics;
    this.#timeoutMs = parts.timeoutMs ?? protocolTimes.deliveryTimeoutMs;
  }

  /**
   * Begins the delivery of a request's answer, which the caller of this function writes to the response next. From here on
   * only the connection decides about the charge: a cancellation changes nothing any more.
   * @param payable the provider calls that the caller leaves unpaid if it does not take the answer.
   * @returns what to call once a whole copy of the answer was handed to the socket. It confirms the charge, which is
   * reversed if the response closes before.
   * @throws {CallerError} `engine_timeout` if it is too late, {@link CallerDisconnected}: the answer must not be written.
   */
  begin(request: SearchRequest, response: ServerResponse, payable: PayableCalls | undefined): () => void {
    const { deadline, disconnected } = request;
    if (response.closed || response.destroyed || disconnected.aborted) {
      this.#fail(request, "caller_disconnected", payable);
      throw new CallerDisconnected();
    }
    if (deadline.remainingMs() < -protocolTimes.deliveryFenceMs) {
      this.#fail(request, "too_late");
      throw deadline.error();
    }
    // A response has the socket when its request is handled, so this ends the connection.
    const slow = setTimeout(() => response.destroy(), this.#timeoutMs);
    let isDecided = false;
    const decide = (record: () => void) => {
      clearTimeout(slow);
      if (!isDecided) record();
      isDecided = true;
    };
    response.once("close", () => decide(() => this.#fail(request, "caller_disconnected", payable)));
    return () => decide(() => this.#confirm(request));
  }

  #confirm(request: SearchRequest): void {
    const { requestId, key, end } = request;
    end();
    this.#metrics.deliveries.inc({ outcome: "delivered" });
    if (!key) this.#confirmations.confirm(requestId);
  }

  #fail(request: SearchRequest, outcome: "caller_disconnected" | "too_late", unpaid?: PayableCalls): void {
    this.#metrics.deliveries.inc({ outcome });
    if (request.key) return request.end();
    const reason = outcome === "too_late" ? "engine_timeout" : "caller_disconnected";
    // It is in flight until its calls are counted.
    void this.#confirmations.reverse(request, reason, unpaid).then(request.end);
  }
}
