import type { Redis } from "ioredis";
import { type Log, throttledWarning } from "../../shared/log.ts";
import { announceDisconnected } from "../../shared/queue/disconnected-searches.ts";
import type { SearchQueue } from "../../shared/queue/search-queue.ts";
import type { Refunds } from "./refunds.ts";
import type { Reply } from "./reply-inbox.ts";
import type { SearchRequest } from "./search-request.ts";

/**
 * Searches without an Idempotency-Key whose caller disconnected, or cancelled over MCP, while they ran. Each is refunded at
 * once. What else happens depends on where its job is:
 *
 *   in the queue    the job is removed and the hold dropped: the search has cost nothing.
 *   at a worker     the worker gets a message to send no further call to a provider. The calls that were sent may be
 *                   billed, so the hold keeps its concurrency slot with 0 mils until the worker ends it, and they count as
 *                   unpaid: an organization has a budget of those (shared/credits/unpaid-calls.ts).
 *
 * If this process dies in between, the worker or the sweeper ends the hold. If the message is lost, the search runs on.
 */
export class Cancellations {
  readonly #queue: SearchQueue;
  readonly #redis: Redis;
  readonly #refunds: Refunds;
  readonly #warn: (error: unknown) => void;
  readonly #underWay = new Set<Promise<void>>();

  constructor(parts: { queue: SearchQueue; redis: Redis; refunds: Refunds; log: Log }) {
    this.#queue = parts.queue;
    this.#redis = parts.redis;
    this.#refunds = parts.refunds;
    this.#warn = throttledWarning(
      parts.log,
      "cannot tell the workers that a caller disconnected, so its search runs on",
    );
  }

  /** Gives a search up. @returns resolves once it has ended in Postgres, or was left to the sweeper. Never rejects. */
  cancel(request: SearchRequest, reply: Promise<Reply>): Promise<void> {
    const step = this.#cancel(request, reply);
    this.#underWay.add(step);
    return step.finally(() => this.#underWay.delete(step));
  }

  async idle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  async #cancel(request: SearchRequest, reply: Promise<Reply>): Promise<void> {
    const { requestId, deadline } = request;
    // If Redis does not say, a worker may have it.
    const isRemoved = await this.#queue.remove(requestId).catch(() => false);
    if (!isRemoved) void announceDisconnected(this.#redis, requestId).catch(this.#warn);
    const refund = this.#refunds.refund(request, "caller_disconnected", deadline.error(), !isRemoved);
    await this.#refunds.reverseIfCharged(request, refund, "caller_disconnected", reply);
  }
}
