import { Batcher } from "../../shared/concurrency/batcher.ts";
import { retryUntil } from "../../shared/concurrency/retry.ts";
import type { Context } from "../../shared/context.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import { confirmDelivered, type ReversalReason, reverseCharges } from "../../shared/credits/ledger.ts";
import { throttledWarning } from "../../shared/log.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";

const confirmedAtOnceMax = 1_000;
// Nobody waits for a confirmation: fewer, larger statements. What a killed process had not confirmed yet is given back.
const confirmEveryMs = 50;
const retryPauseMs = 100;

interface Charge {
  organizationId: string;
  requestId: string;
}

/**
 * What is known of charged answers once they were written: delivered, then the charge is final; or not, then it is given
 * back. If the process dies before it says so, the reconciler gives back: in doubt the caller keeps the mils.
 */
export class DeliveryConfirmations {
  readonly #context: Context;
  readonly #confirmations: Batcher<string>;
  readonly #reversals = new Set<Promise<void>>();
  readonly #warn: (error: unknown) => void;

  constructor(context: Context) {
    this.#context = context;
    this.#warn = throttledWarning(context.log, "a delivery was not recorded at once");
    this.#confirmations = new Batcher({
      sizeMax: confirmedAtOnceMax,
      concurrency: 1,
      pauseMs: confirmEveryMs,
      run: (requestIds) =>
        this.#persist(protocolTimes.confirmationRetryMs, () => confirmDelivered(context.database, requestIds)),
    });
  }

  /** The answer's last byte is in the caller's socket. */
  confirm(requestId: string): void {
    this.#confirmations.add(requestId);
  }

  /** The answer of an unkeyed search reached nobody. Runs on its own; {@link idle} waits for it. */
  reverse(charge: Charge, reason: ReversalReason): void {
    const reversal = this.#persist(protocolTimes.reversalRetryMs, () => this.#giveBack(charge, reason));
    this.#reversals.add(reversal);
    void reversal.finally(() => this.#reversals.delete(reversal));
  }

  async idle(): Promise<void> {
    await this.#confirmations.idle();
    await Promise.all(this.#reversals);
  }

  async #giveBack(charge: Charge, reason: ReversalReason): Promise<void> {
    const { database, redis, metrics } = this.#context;
    const [reversal] = await reverseCharges(database, [charge], reason);
    if (!reversal) return;
    metrics.reversals.inc({ reason }, reversal.requestIds.length);
    metrics.reversedMils.inc({ reason }, reversal.mils);
    // Lost on the way it is made good by the next settlement of the organization, or by the reconciler.
    await settleHolds(redis, charge.organizationId, reversal.balance, [{ requestId: charge.requestId }]);
  }

  async #persist(retryForMs: number, step: () => Promise<void>): Promise<void> {
    const onError = (error: unknown) => {
      this.#context.metrics.backgroundErrors.inc({ where: "deliveries" });
      this.#warn(error);
    };
    await retryUntil({ giveUpAtMs: performance.now() + retryForMs, pauseMs: retryPauseMs, onError }, step);
  }
}
