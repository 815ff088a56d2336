import type { Decision } from "../../shared/credits/ledger.ts";
import type { RefundReason } from "../../shared/outcomes.ts";
import type { Settlement } from "../../shared/credits/settlement.ts";
import { withTimeout } from "../../shared/concurrency/with-timeout.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import type { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { SearchLog } from "../../shared/search-log/search-log.ts";
import type { DeliveryConfirmations } from "./delivery-confirmations.ts";
import type { Reply } from "./reply-inbox.ts";
import type { SearchRequest } from "./search-request.ts";

/** The undo of a hold: Postgres gets the deciding entry, then Redis drops the hold. The worker may have charged before. */
export class Refunds {
  readonly #settlement: Settlement;
  readonly #confirmations: DeliveryConfirmations;
  readonly #searchLog: SearchLog | undefined;
  readonly #log: Log;

  constructor(parts: {
    settlement: Settlement;
    confirmations: DeliveryConfirmations;
    /** Undefined unless searches are logged. */
    searchLog: SearchLog | undefined;
    log: Log;
  }) {
    this.#settlement = parts.settlement;
    this.#confirmations = parts.confirmations;
    this.#searchLog = parts.searchLog;
    this.#log = parts.log;
  }

  /**
   * Asks Postgres to refund a search. `error` is what repeats that wait on its Idempotency-Key get. With `callerDisconnected` a
   * worker may still have it: its mils are free, and it keeps its concurrency slot until the worker ends it.
   * @returns the decision, which is a charge if the worker was faster. Its hold then stays with the worker.
   * @throws if Postgres stays unreachable for `undoRetryMs`.
   */
  async refund(
    request: SearchRequest,
    reason: RefundReason,
    error: CallerError,
    callerDisconnected = false,
  ): Promise<Decision> {
    const { requestId, caller, key, deadline } = request;
    const durationMs = deadline.timeoutMs - deadline.remainingMs();
    const { organizationId, tokenId } = caller;
    const undo = { wanted: "refund", reason, key, organizationId, tokenId, requestId } as const;
    const decision = await this.#settlement.decide(undo, protocolTimes.undoRetryMs);
    const { code, details } = error;
    const outcome = { kind: "failure", code, details } as const;
    await this.#settlement.publish(
      { request: undo, decision, outcome, ifCharged: "keep_hold", callerDisconnected },
      protocolTimes.undoRetryMs,
    );
    if (decision.isNew) this.#logSearch(request, durationMs); // Otherwise the worker does.
    return decision;
  }

  #logSearch({ requestId, caller, key, query }: SearchRequest, durationMs: number): void {
    const { organizationId, tokenId } = caller;
    const known = { requestId, organizationId, tokenId, keyHash: key?.hash, query };
    this.#searchLog?.add({ ...known, durationMs, trace: undefined });
  }

  /** Refunds a search whose caller has its error already. The sweeper does it if this fails. */
  refundInBackground(request: SearchRequest, reason: RefundReason, error: CallerError): void {
    void this.reverseIfCharged(request, this.refund(request, reason, error), "engine_timeout");
  }

  /**
   * Never rejects. Reverses the charge if a refund under way turns out to meet one: the answer can no longer be delivered. `reply` has the
   * provider calls that the caller leaves unpaid then.
   */
  reverseIfCharged(
    request: SearchRequest,
    refund: Promise<Decision>,
    reason: "caller_disconnected" | "engine_timeout",
    reply?: Promise<Reply>,
  ): Promise<void> {
    return refund
      .then(async (decision) => {
        if (decision.kind !== "charge") return;
        const late = reply && (await withTimeout(protocolTimes.lateAnswerMs, reply).catch(() => undefined));
        this.reverse(request, reason, late?.payable);
      })
      .catch((cause: unknown) => {
        this.#log.warn({ err: cause, requestId: request.requestId }, "refund failed, left to the sweeper");
      });
  }

  /** Reverses the charge of a search without a key. Under a key the charge stands: a repeat gets the answer. */
  reverse(request: SearchRequest, reason: "caller_disconnected" | "engine_timeout", unpaid?: PayableCalls): void {
    if (!request.key) void this.#confirmations.reverse(request, reason, unpaid);
  }
}
