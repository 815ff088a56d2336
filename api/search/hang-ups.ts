import type { Redis } from "ioredis";
import { type Log, throttledWarning } from "../../shared/log.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { announceAbandoned } from "../../shared/queue/abandoned-searches.ts";
import type { SearchQueue } from "../../shared/queue/search-queue.ts";
import type { Refunds } from "./refunds.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * Searches without an Idempotency-Key whose caller disconnected, or cancelled over MCP, while they ran. Each is refunded at
 * once. What else happens depends on where its job is:
 *
 *   in the queue    the job is removed and the hold dropped: the search has cost nothing.
 *   at a worker     the worker gets a message to send no further call to a provider. The calls that were sent may be
 *                   billed, so the hold stays as a place in flight of 0 mils until the worker ends it, and the search is counted: an
 *                   organization may abandon only so many (admit.lua).
 *
 * If this process dies in between, the worker or the sweeper ends the hold. If the message is lost, the search runs on.
 */
export class HangUps {
  readonly #queue: SearchQueue;
  readonly #redis: Redis;
  readonly #refunds: Refunds;
  readonly #metrics: Metrics;
  readonly #warn: (error: unknown) => void;
  readonly #underWay = new Set<Promise<void>>();

  constructor(parts: { queue: SearchQueue; redis: Redis; refunds: Refunds; metrics: Metrics; log: Log }) {
    this.#queue = parts.queue;
    this.#redis = parts.redis;
    this.#refunds = parts.refunds;
    this.#metrics = parts.metrics;
    this.#warn = throttledWarning(parts.log, "cannot tell the workers that a caller hung up, so its search runs on");
  }

  /** Gives a search up. Runs in the background; {@link idle} waits for it. */
  giveUp(request: SearchRequest): void {
    const step = this.#giveUp(request);
    this.#underWay.add(step);
    void step.finally(() => this.#underWay.delete(step));
  }

  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #giveUp(request: SearchRequest): Promise<void> {
    const { requestId, deadline } = request;
    // If Redis does not say, a worker may have it.
    const isRemoved = await this.#queue.remove(requestId).catch(() => false);
    if (!isRemoved) void announceAbandoned(this.#redis, requestId).catch(this.#warn);
    const refund = this.#refunds.refund(request, "caller_gone", deadline.error(), !isRemoved);
    this.#refunds.reverseIfCharged(request, refund, "caller_gone");
    const decision = await refund.catch(() => undefined);
    if (!isRemoved && decision?.reason === "caller_gone") this.#metrics.abandonedSearches.inc();
  }
}
