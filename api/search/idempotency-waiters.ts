import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type IdempotencyState, readIdempotencyState } from "../../shared/credits/holds.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";

const firstPollMs = 10;
const failuresMax = 20;

/**
 * Repeats that wait for the first request under their Idempotency-Key. The key's record in Redis has one of these states:
 *
 *   running    the first request holds the key; poll again
 *   answered   the repeat gets the same bytes, from Postgres
 *   failed     the repeat gets the same error
 *   gone       there is no record (it expired, or was lost with Redis); the repeat looks in Postgres, and otherwise tries to
 *              be admitted itself
 *
 * All repeats of one key in this process share one poll.
 */
export class IdempotencyWaiters {
  readonly #redis: Redis;
  readonly #polls = new Map<string, Promise<IdempotencyState>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Waits until the key's first request has left `running`, or `untilMs` (`performance.now()`) has passed.
   * @throws if Redis stays unreachable.
   */
  ended(organizationId: string, keyHash: string, untilMs: number): Promise<IdempotencyState> {
    const name = `${organizationId} ${keyHash}`;
    const running = this.#polls.get(name);
    if (running) return running;
    const poll = this.#poll(organizationId, keyHash, untilMs).finally(() => this.#polls.delete(name));
    this.#polls.set(name, poll);
    return poll;
  }

  async #poll(organizationId: string, keyHash: string, untilMs: number): Promise<IdempotencyState> {
    let pauseMs = firstPollMs;
    let failures = 0;
    for (;;) {
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 1.5, protocolTimes.idempotencyPollMaxMs);
      try {
        const state = await readIdempotencyState(this.#redis, organizationId, keyHash);
        if (state.outcome !== "running" || performance.now() > untilMs) return state;
      } catch (error) {
        failures += 1;
        if (failures > failuresMax) throw error;
      }
    }
  }
}
