import type { ServerResponse } from "node:http";
import type { Context } from "../../shared/process/context.ts";
import { Batcher } from "../../shared/concurrency/batcher.ts";
import { retryUntil } from "../../shared/concurrency/retry.ts";
import { Semaphore } from "../../shared/concurrency/semaphore.ts";
import { confirmDelivered, reverseCharges } from "../../shared/credits/deliveries.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { throttledWarning } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import type { ReversalReason } from "../../shared/outcomes.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import { CallerDisconnected } from "../errors.ts";
import type { SearchRequest } from "./search-request.ts";

const batchSizeMax = 1_000;
// No caller waits for a confirmation, so the pause makes fewer and larger statements. The reconciler reverses the charges
// of a process that was killed before it confirmed them.
const batchPauseMs = 50;
const retryPauseMs = 100;
/** Each keeps a connection, also while it waits for a locked organization: the others are for everything else. */
const reversalsAtOnce = 2;

interface DeliveryParts {
  confirmations: Pick<DeliveryConfirmations, "confirm" | "reverse">;
  metrics: Pick<Metrics, "deliveries">;
  /** How long a caller may take for an answer. */
  timeoutMs?: number;
}

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
 * the charge: in doubt, the caller does not pay.
 */
export class Delivery {
  readonly #parts: DeliveryParts;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
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
    const startedAtMs = performance.now();
    // A response has the socket when its request is handled, so this ends the connection.
    const slow = setTimeout(() => response.destroy(), this.#parts.timeoutMs ?? protocolTimes.deliveryTimeoutMs);
    let isDecided = false;
    const decide = (outcome: "delivered" | "caller_disconnected") => {
      clearTimeout(slow);
      if (isDecided) return;
      isDecided = true;
      request.spans?.add("delivery", startedAtMs, { outcome });
      if (outcome === "delivered") this.#confirm(request);
      else this.#fail(request, outcome, payable);
    };
    response.once("close", () => decide("caller_disconnected"));
    return () => decide("delivered");
  }

  #confirm(request: SearchRequest): void {
    const { requestId, key, end } = request;
    end();
    this.#parts.metrics.deliveries.inc({ outcome: "delivered" });
    if (!key) this.#parts.confirmations.confirm(requestId);
  }

  #fail(request: SearchRequest, outcome: "caller_disconnected" | "too_late", unpaid?: PayableCalls): void {
    this.#parts.metrics.deliveries.inc({ outcome });
    if (request.key) return request.end();
    const reason = outcome === "too_late" ? "engine_timeout" : "caller_disconnected";
    // It is in flight until its calls are counted.
    void this.#parts.confirmations.reverse(request, reason, unpaid).then(request.end);
  }
}

type Charged = Pick<SearchRequest, "requestId" | "caller">;

type ConfirmationParts = Pick<Context, "database" | "redis" | "metrics" | "log">;

/** Records in Postgres how the delivery of charged answers ended: confirmed, which makes the charge final, or reversed. */
export class DeliveryConfirmations {
  readonly #parts: ConfirmationParts;
  readonly #confirmations: Batcher<string>;
  readonly #reversals = new Set<Promise<void>>();
  readonly #semaphore = new Semaphore(reversalsAtOnce);
  readonly #warn: (error: unknown) => void;

  constructor(parts: ConfirmationParts) {
    this.#parts = parts;
    this.#warn = throttledWarning(parts.log, "recording a delivery failed, will retry");
    this.#confirmations = new Batcher({
      sizeMax: batchSizeMax,
      concurrency: 1,
      pauseMs: batchPauseMs,
      run: (requestIds) =>
        this.#persist(protocolTimes.confirmationRetryMs, () => confirmDelivered(parts.database, requestIds)),
    });
  }

  /** A whole copy of the answer was handed to the caller's socket. Runs in the background; {@link idle} waits for it. */
  confirm(requestId: string): void {
    this.#confirmations.add(requestId);
  }

  /**
   * The answer of a search without a key was not delivered. Runs in the background; {@link idle} waits for it.
   * @param unpaid the provider calls that count against the budget of the caller, who did not take the answer.
   * @returns resolves once it was reversed and counted, or given up. Never rejects.
   */
  reverse(charged: Charged, reason: ReversalReason, unpaid?: PayableCalls): Promise<void> {
    const reversal = this.#persist(protocolTimes.reversalRetryMs, () => this.#giveBack(charged, reason, unpaid));
    this.#reversals.add(reversal);
    return reversal.finally(() => this.#reversals.delete(reversal));
  }

  async idle(): Promise<void> {
    await this.#confirmations.idle();
    await Promise.all(this.#reversals);
  }

  async #giveBack(
    { requestId, caller }: Charged,
    reason: ReversalReason,
    unpaid: PayableCalls | undefined,
  ): Promise<void> {
    const { database, redis, metrics } = this.#parts;
    const { organizationId, tokenId, plan } = caller;
    const reverseOne = () => reverseCharges(database, [{ organizationId, requestId }], reason);
    // In turns of organizations: one that is locked must not hold up the others with all its reversals.
    const [reversal] = await this.#semaphore.run(reverseOne, organizationId);
    if (!reversal) return;
    metrics.reversals.inc({ reason }, reversal.requestIds.length);
    metrics.reversedMils.inc({ reason }, reversal.mils);
    // If Redis misses this, the organization's next settlement or the reconciler stores the balance.
    const budget = { tokenId, callsPerHour: plan.unpaidCalls, isKeyed: false };
    const counted = unpaidBy(requestId, reason, unpaid).map((calls) => ({
      kind: "unpaid" as const,
      ...calls,
      ...budget,
    }));
    const ends = [{ requestId }, ...counted.map((calls) => ({ requestId, calls }))];
    const { balance, before } = reversal;
    metrics.unpaidCalls.inc(await settleHolds(redis, organizationId, balance, ends, { before }));
  }

  /** Retries a step until it succeeds or `retryForMs` has passed. Never rejects. */
  async #persist(retryForMs: number, step: () => Promise<void>): Promise<void> {
    const onError = (error: unknown) => {
      this.#parts.metrics.backgroundErrors.inc({ where: "deliveries" });
      this.#warn(error);
    };
    await retryUntil({ giveUpAtMs: performance.now() + retryForMs, pauseMs: retryPauseMs, onError }, step);
  }
}

/**
 * The calls that count against the caller of a reversed charge. Both entries of the ledger stay. So an answer that its caller did not
 * take counts as one call if its search made none, by a flight of its own, and the budget bounds such entries.
 */
function unpaidBy(requestId: string, reason: ReversalReason, unpaid: PayableCalls | undefined): PayableCalls[] {
  const own = unpaid ? [unpaid] : [];
  const isUntaken = reason === "caller_disconnected" && (unpaid?.calls ?? 0) === 0;
  return isUntaken ? [...own, { flight: requestId, calls: 1 }] : own;
}
