import type { Redis } from "ioredis";
import { Batcher } from "../../shared/concurrency/batcher.ts";
import { retryUntil } from "../../shared/concurrency/retry.ts";
import { whichHoldsExist } from "../../shared/credits/open-holds.ts";
import type { CallerError } from "../../shared/errors.ts";
import { type Log, throttledWarning } from "../../shared/log.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { Refunds } from "./refunds.ts";
import type { SearchRequest } from "./search-request.ts";

const batchSizeMax = 1_000;
const batchPauseMs = 50;
const retryPauseMs = 200;

interface Unknown {
  request: SearchRequest;
  error: CallerError;
  giveUpAtMs: number;
}

/**
 * Searches whose admission has an unknown outcome: Redis may have placed the hold although its reply was lost. Only a hold
 * that exists is refunded, because every refund is a row in Postgres, and a refusal leaves none. An admission that
 * reaches Redis after it was asked, or a Redis that does not answer in time, leaves the hold to the sweeper.
 */
export class UnknownAdmissions {
  readonly #redis: Redis;
  readonly #refunds: Refunds;
  readonly #warn: (error: unknown) => void;
  readonly #batches: Batcher<Unknown>;

  constructor({ redis, refunds, log }: { redis: Redis; refunds: Refunds; log: Log }) {
    this.#redis = redis;
    this.#refunds = refunds;
    this.#warn = throttledWarning(log, "cannot tell whether an admission placed its hold, will retry");
    this.#batches = new Batcher({
      sizeMax: batchSizeMax,
      concurrency: 1,
      pauseMs: batchPauseMs,
      run: (batch) => this.#refundHeld(batch),
    });
  }

  /** Ends the search's hold, if there is one. `error` is what repeats that wait on its key get. Runs in the background. */
  undo(request: SearchRequest, error: CallerError): void {
    this.#batches.add({ request, error, giveUpAtMs: performance.now() + protocolTimes.undoRetryMs });
  }

  idle(): Promise<void> {
    return this.#batches.idle();
  }

  async #refundHeld(batch: readonly Unknown[]): Promise<void> {
    const open = batch.filter(({ giveUpAtMs }) => performance.now() < giveUpAtMs);
    const giveUpAtMs = Math.max(0, ...open.map((unknown) => unknown.giveUpAtMs));
    await retryUntil({ giveUpAtMs, pauseMs: retryPauseMs, onError: this.#warn }, async () => {
      const searches = open.map(({ request: { requestId, caller } }) => ({ requestId, ...caller }));
      const held = await whichHoldsExist(this.#redis, searches);
      for (const { request, error } of open)
        if (held.has(request.requestId)) this.#refunds.refundInBackground(request, "admission_unknown", error);
    });
  }
}
