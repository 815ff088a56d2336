import type { Redis } from "ioredis";
import { Batcher } from "../../shared/concurrency/batcher.ts";
import { retryUntil } from "../../shared/concurrency/retry.ts";
import { withTimeout } from "../../shared/concurrency/wait-for.ts";
import type { Decision } from "../../shared/credits/ledger.ts";
import { whichHoldsExist } from "../../shared/credits/open-holds.ts";
import type { Settlement } from "../../shared/credits/settlement.ts";
import type { CallerError } from "../../shared/errors.ts";
import { type Log, throttledWarning } from "../../shared/log.ts";
import type { RefundReason } from "../../shared/outcomes.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import { announceDisconnected } from "../../shared/queue/disconnected-searches.ts";
import type { PayableCalls, Reply } from "../../shared/queue/replies.ts";
import type { SearchQueue } from "../../shared/queue/search-queue.ts";
import type { SearchLog } from "../../shared/search-log/search-log.ts";
import type { DeliveryConfirmations } from "./delivery.ts";
import type { SearchRequest } from "./search-request.ts";

const unknownBatchSizeMax = 1_000;
const unknownBatchPauseMs = 50;
const unknownRetryPauseMs = 200;

interface Parts {
  settlement: Settlement;
  confirmations: DeliveryConfirmations;
  queue: SearchQueue;
  redis: Redis;
  /** Undefined unless searches are logged. */
  searchLog: SearchLog | undefined;
  log: Log;
}

/** A search whose admission has an unknown outcome. */
interface Unknown {
  request: SearchRequest;
  error: CallerError;
  giveUpAtMs: number;
}

/**
 * The undo of a hold: Postgres records the refund, then Redis drops the hold. If the worker has charged before, the charge is
 * reversed instead. The sweeper refunds what this process leaves behind.
 */
export class Refunds {
  readonly #parts: Parts;
  readonly #unknown: Batcher<Unknown>;
  readonly #cancellations = new Set<Promise<void>>();
  readonly #warnUnannounced: (error: unknown) => void;
  readonly #warnUnknown: (error: unknown) => void;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#warnUnannounced = throttledWarning(
      parts.log,
      "cannot tell the workers that a caller disconnected, so its search runs on",
    );
    this.#warnUnknown = throttledWarning(parts.log, "cannot tell whether an admission placed its hold, will retry");
    this.#unknown = new Batcher({
      sizeMax: unknownBatchSizeMax,
      concurrency: 1,
      pauseMs: unknownBatchPauseMs,
      run: (batch) => this.#refundHeld(batch),
    });
  }

  /**
   * Asks Postgres to refund a search. `error` is what repeats get that wait on its Idempotency-Key. With `callerDisconnected` a
   * worker may still have the search: its mils are free, and it keeps its concurrency slot until the worker ends it.
   * @returns the decision, which is a charge if the worker was faster. Its hold then stays with the worker.
   * @throws if Postgres stays unreachable for `undoRetryMs`.
   */
  async refund(
    request: SearchRequest,
    reason: RefundReason,
    error: CallerError,
    callerDisconnected = false,
  ): Promise<Decision> {
    const { settlement } = this.#parts;
    const { requestId, caller, key, deadline } = request;
    const durationMs = deadline.timeoutMs - deadline.remainingMs();
    const { organizationId, tokenId } = caller;
    const startedAtMs = performance.now();
    const undo = { wanted: "refund", reason, key, organizationId, tokenId, requestId } as const;
    const decision = await settlement.decide(undo, protocolTimes.undoRetryMs);
    const { code, details } = error;
    const outcome = { kind: "failure", code, details } as const;
    await settlement.publish(
      { request: undo, decision, outcome, ifCharged: "keep_hold", callerDisconnected },
      protocolTimes.undoRetryMs,
    );
    request.spans?.add("settlement", startedAtMs, { decided: decision.kind });
    if (decision.isNew) this.#logSearch(request, durationMs); // Otherwise the worker does.
    return decision;
  }

  #logSearch({ requestId, caller, key, query }: SearchRequest, durationMs: number): void {
    const { organizationId, tokenId } = caller;
    const known = { requestId, organizationId, tokenId, keyHash: key?.hash, query };
    this.#parts.searchLog?.add({ ...known, durationMs, trace: undefined });
  }

  /** Refunds a search whose caller has its error already. The sweeper does it if this fails. */
  refundInBackground(request: SearchRequest, reason: RefundReason, error: CallerError): void {
    void this.reverseIfCharged(request, this.refund(request, reason, error), "engine_timeout");
  }

  /**
   * Reverses the charge if a refund under way turns out to meet one: the answer can no longer be delivered. `reply` has the
   * provider calls that the caller leaves unpaid then. Never rejects.
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
        this.#parts.log.warn({ err: cause, requestId: request.requestId }, "refund failed, left to the sweeper");
      });
  }

  /** Reverses the charge of a search without a key. Under a key the charge stands: a repeat gets the answer. */
  reverse(request: SearchRequest, reason: "caller_disconnected" | "engine_timeout", unpaid?: PayableCalls): void {
    if (!request.key) void this.#parts.confirmations.reverse(request, reason, unpaid);
  }

  /**
   * Cancels a search without an Idempotency-Key whose caller disconnected, or cancelled over MCP, while it ran. It is refunded
   * at once. What else happens depends on where its job is:
   *
   *   in the queue    the job is removed and the hold dropped: the search has cost nothing.
   *   at a worker     a message tells the worker to send no further call to a provider. The calls that were sent may be
   *                   billed, so the hold keeps its concurrency slot with 0 mils until the worker ends it, and they count as
   *                   unpaid: an organization has a budget of those (shared/credits/unpaid-calls.ts).
   *
   * If this process dies in between, the worker or the sweeper ends the hold. If the message is lost, the search runs on.
   * @returns resolves once the search has ended in Postgres, or was left to the sweeper. Never rejects.
   */
  cancel(request: SearchRequest, reply: Promise<Reply>): Promise<void> {
    const step = this.reverseIfCharged(request, this.withdraw(request), "caller_disconnected", reply);
    this.#cancellations.add(step);
    return step.finally(() => this.#cancellations.delete(step));
  }

  /**
   * The first half of {@link cancel}, and the whole of it under an Idempotency-Key, where a charge stands and its answer can be
   * fetched. Repeats that wait on the key get the error of a search that was not answered in time.
   * @returns the decision: a charge if the answer was faster. @throws if Postgres stays unreachable.
   */
  async withdraw(request: SearchRequest): Promise<Decision> {
    const { queue, redis } = this.#parts;
    const { requestId, deadline } = request;
    // If Redis does not say, a worker may have it.
    const isRemoved = await queue.remove(requestId).catch(() => false);
    if (!isRemoved) void announceDisconnected(redis, requestId).catch(this.#warnUnannounced);
    return this.refund(request, "caller_disconnected", deadline.error(), !isRemoved);
  }

  /**
   * Undoes an admission whose outcome is unknown: Redis may have placed the hold although its reply was lost. Only a hold that
   * exists is refunded, because every refund is a row in Postgres, and a refusal leaves none. The sweeper gets the hold of an
   * admission that reaches Redis after it was asked, or of a Redis that does not answer in time. Runs in the background.
   * @param error what repeats get that wait on the key of the search.
   */
  undoAdmission(request: SearchRequest, error: CallerError): void {
    this.#unknown.add({ request, error, giveUpAtMs: performance.now() + protocolTimes.undoRetryMs });
  }

  async #refundHeld(batch: readonly Unknown[]): Promise<void> {
    const open = batch.filter(({ giveUpAtMs }) => performance.now() < giveUpAtMs);
    const giveUpAtMs = Math.max(0, ...open.map((unknown) => unknown.giveUpAtMs));
    await retryUntil({ giveUpAtMs, pauseMs: unknownRetryPauseMs, onError: this.#warnUnknown }, async () => {
      const searches = open.map(({ request: { requestId, caller } }) => ({ requestId, ...caller }));
      const held = await whichHoldsExist(this.#parts.redis, searches);
      for (const { request, error } of open)
        if (held.has(request.requestId)) this.refundInBackground(request, "admission_unknown", error);
    });
  }

  /** Resolves once every undo that was asked for is in Postgres, or was left to the sweeper. */
  async idle(): Promise<void> {
    await this.#unknown.idle();
    await Promise.all(this.#cancellations);
    await this.#parts.settlement.idle();
    await this.#parts.confirmations.idle();
  }
}
