import { waitFor, withTimeout } from "../../shared/concurrency/wait-for.ts";
import type { RateWindow } from "../../shared/credits/admit.ts";
import { cachedPriceMils } from "../../shared/credits/plans.ts";
import { CallerError } from "../../shared/errors.ts";
import type { Log } from "../../shared/log.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { PayableCalls, Reply, SearchTrace } from "../../shared/queue/replies.ts";
import type { SearchQueue } from "../../shared/queue/search-queue.ts";
import { queryFingerprint, searchedPart } from "../../shared/query/query.ts";
import { mayHaveRun } from "../../shared/redis/connect.ts";
import { redisFailure } from "../datastore-unavailable.ts";
import { CallerDisconnected, SearchFailed } from "../errors.ts";
import { type AdmissionControl, AdmissionFailed, type Held, type Replayed } from "./admission.ts";
import type { Refunds } from "./refunds.ts";
import type { ReplyInbox } from "./reply-inbox.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * One search from admission to its answer. Each step, and what undoes it if a later one fails:
 *
 *   1. admit     places a hold           refund, if Redis has the hold: Postgres records it, then Redis drops the hold
 *   2. enqueue   adds the job            refund; the worker finds the refund when it settles, and charges nothing
 *   3. wait      for the worker's reply  at the deadline: refund. If the worker has charged already, wait `lateAnswerMs`
 *                                        for its answer, then reverse the charge
 *                                        caller disconnected: `Refunds.cancel`. With an Idempotency-Key the search runs on,
 *                                        and a repeat gets its answer
 *   4. deliver   see delivery.ts         reverse the charge
 *
 * If this process dies, the sweeper refunds open holds and the reconciler reverses charges that were not delivered.
 */

/** The answer of a search, as it goes to the caller. */
export interface DeliverableAnswer {
  /** The request that the answer belongs to: this one, or the first one under its Idempotency-Key. */
  requestId: string;
  /** The whole response body, serialised by the worker. */
  body: Buffer;
  replayed: boolean;
  window: RateWindow;
  /** Mils charged by this very request; 0 for a replay, or if the key had paid before. */
  chargedMils: number;
  trace: SearchTrace | undefined;
  /** The provider calls that count as unpaid if the caller does not take the answer. */
  payable?: PayableCalls | undefined;
}

interface Parts {
  admission: AdmissionControl;
  queue: SearchQueue;
  replyInbox: ReplyInbox;
  refunds: Refunds;
  log: Log;
}

export class Search {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Runs a search until its answer, a charge that is still undelivered.
   * @throws {CallerError} the refusal or failure that the caller gets.
   * @throws {CallerDisconnected} if no caller waits for the answer any more.
   */
  async run(request: SearchRequest): Promise<DeliverableAnswer> {
    try {
      const admitted = await this.#admit(request);
      if (admitted.outcome === "replayed") {
        const { requestId, body, window } = admitted;
        return { requestId, body, window, replayed: true, chargedMils: 0, trace: undefined };
      }
      return await this.#runAdmitted(request, admitted);
    } catch (error) {
      request.end(); // Otherwise its delivery ends it.
      throw error;
    }
  }

  async #runAdmitted(request: SearchRequest, admitted: Held): Promise<DeliverableAnswer> {
    const { replyInbox } = this.#parts;
    const admittedAtMs = performance.now();
    const reply = replyInbox.expect(request.requestId);
    try {
      await this.#enqueue(request, admitted);
      const answer = this.#finish(request, admitted, await this.#await(request, reply));
      const leftMs = Math.max(0, answer.window.leftMs - (performance.now() - admittedAtMs));
      return { ...answer, window: { ...answer.window, leftMs } };
    } finally {
      replyInbox.forget(request.requestId);
    }
  }

  async #admit(request: SearchRequest): Promise<Held | Replayed> {
    const startedAtMs = performance.now();
    try {
      const admitted = await this.#parts.admission.admit(request);
      request.spans?.add("admission", startedAtMs, { outcome: admitted.outcome });
      return admitted;
    } catch (error) {
      request.spans?.add("admission", startedAtMs, { outcome: error instanceof CallerError ? error.code : "unknown" });
      if (!(error instanceof AdmissionFailed)) throw error;
      const failure = redisFailure(error.cause);
      // Redis may have placed the hold although its reply was lost. The caller does not wait for the refund.
      if (mayHaveRun(error.cause)) this.#parts.refunds.undoAdmission(request, forRepeats(failure));
      throw failure;
    }
  }

  async #enqueue(request: SearchRequest, held: Held): Promise<void> {
    const { queue, replyInbox, refunds, log } = this.#parts;
    const { requestId, caller, query, key, deadline, spans } = request;
    const { priceMils, remainingMils, openSearches, deadlineAtMs, turn, hadLittleTime } = held;
    try {
      const job = {
        requestId,
        organizationId: caller.organizationId,
        tokenId: caller.tokenId,
        limits: caller.limits ?? {},
        query,
        priceMils,
        remainingMils,
        openSearches,
        deadlineAtMs,
        enqueuedAtMs: deadlineAtMs - deadline.remainingMs(),
        timeoutMs: deadline.timeoutMs,
        inbox: replyInbox.key,
        unpaidCallsPerHour: caller.plan.unpaidCalls,
        hadLittleTime,
        ...(!(caller.keepsAnswers && query.maxAgeSeconds) && { flight: queryFingerprint(searchedPart(query)) }),
        ...(key && { key }),
        ...(spans && { traceparent: spans.traceparent }),
        ...(caller.keepsAnswers && { cachedPriceMils: cachedPriceMils(caller.plan, query) }),
      };
      await deadline.limit(queue.enqueue(job, turn));
    } catch (error) {
      log.warn({ err: error, requestId }, "enqueueing failed");
      const failure = redisFailure(error);
      refunds.refundInBackground(request, "not_enqueued", forRepeats(failure));
      throw failure;
    }
  }

  async #await(request: SearchRequest, reply: Promise<Reply>): Promise<Reply> {
    const { deadline, disconnected: signal, key } = request;
    const first = await waitFor(reply, { timeoutMs: deadline.remainingMs(), signal });
    if (first.ended === "done") return first.value;
    if (first.ended === "timed_out") return this.#endLate(request, reply);
    // Until then the reply is read: if the search was charged already, it says which calls stay unpaid.
    if (!key) await this.#parts.refunds.cancel(request, reply);
    throw new CallerDisconnected();
  }

  /**
   * The deadline passed: refunds the search. If it was charged before, waits for its answer or reverses the charge. If the
   * decision comes too late for that, the charge is reversed then.
   */
  async #endLate(request: SearchRequest, reply: Promise<Reply>): Promise<Reply> {
    const { refunds, queue } = this.#parts;
    const error = request.deadline.error();
    const asking = withTimeout(protocolTimes.undoTimeoutMs, queue.workerOf(request.requestId)).catch(() => undefined);
    const refund = refunds.refund(request, "engine_timeout", error);
    const decision = await withTimeout(protocolTimes.undoTimeoutMs, refund).catch(() => undefined);
    if (!decision) void refunds.reverseIfCharged(request, refund, "engine_timeout");
    if (decision?.kind === "charge" || decision?.reason === "already_paid") {
      const late = await withTimeout(protocolTimes.lateAnswerMs, reply).catch(() => undefined);
      if (late) return late;
      refunds.reverse(request, "engine_timeout");
    }
    const worker = await asking;
    throw new SearchFailed(error.code, error.details, { ...(worker !== undefined && { worker }) });
  }

  #finish(request: SearchRequest, { window }: Held, { outcome, trace, payable }: Reply): DeliverableAnswer {
    if (outcome.kind === "failure") {
      // An earlier run charged, but its answer was lost on the way to this process.
      if (outcome.charged) this.#parts.refunds.reverse(request, "engine_timeout");
      // Under a key that charge stands. Of all errors only this one has the caller fetch the answer with a repeat.
      const { code, details } = outcome.charged && request.key ? request.deadline.error() : outcome;
      throw new SearchFailed(code, details, trace);
    }
    const { body, requestId, chargedMils } = outcome;
    return { requestId, body, replayed: requestId !== request.requestId, window, chargedMils, trace, payable };
  }
}

/** What the repeats of a search get that Redis did not take. */
const forRepeats = (failure: unknown) => (failure instanceof CallerError ? failure : new CallerError("internal_error"));
