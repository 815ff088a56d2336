import type { Redis } from "ioredis";
import { Batcher } from "../../shared/concurrency/batcher.ts";
import { retryUntil } from "../../shared/concurrency/retry.ts";
import { settleHolds } from "../../shared/credits/holds.ts";
import type { ReversalReason } from "../../shared/outcomes.ts";
import { confirmDelivered } from "../../shared/credits/deliveries.ts";
import { reverseCharges } from "../../shared/credits/deliveries.ts";
import type { PayableCalls } from "../../shared/queue/replies.ts";
import type { Database } from "../../shared/database/pool.ts";
import { type Log, throttledWarning } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import type { SearchRequest } from "./search-request.ts";

const batchSizeMax = 1_000;
// No caller waits for a confirmation, so the pause makes fewer and larger statements. The reconciler reverses the charges
// of a process that was killed before it confirmed them.
const batchPauseMs = 50;
const retryPauseMs = 100;

type Charged = Pick<SearchRequest, "requestId" | "caller">;

interface Parts {
  database: Database;
  redis: Redis;
  metrics: Metrics;
  log: Log;
}

/** Records in Postgres how the delivery of charged answers ended: confirmed, which makes the charge final, or reversed. */
export class DeliveryConfirmations {
  readonly #parts: Parts;
  readonly #confirmations: Batcher<string>;
  readonly #reversals = new Set<Promise<void>>();
  readonly #warn: (error: unknown) => void;

  constructor(parts: Parts) {
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
    const [reversal] = await reverseCharges(database, [{ organizationId, requestId }], reason);
    if (!reversal) return;
    metrics.reversals.inc({ reason }, reversal.requestIds.length);
    metrics.reversedMils.inc({ reason }, reversal.mils);
    // If Redis misses this, the organization's next settlement or the reconciler stores the balance.
    const budget = { tokenId, callsPerHour: plan.unpaidCalls, isKeyed: false };
    const calls = unpaid && { kind: "unpaid" as const, ...unpaid, ...budget };
    metrics.unpaidCalls.inc(await settleHolds(redis, organizationId, reversal.balance, [{ requestId, calls }]));
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
