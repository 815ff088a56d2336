import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { type IdempotencyState, readIdempotencyState } from "../../shared/credits/holds.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";

const firstPollMs = 10;
const failuresMax = 20;

/**
 * The waits of repeats whose first request still runs. However many wait on one key in this process, one poll asks for
 * all of them.
 */
export class IdempotencyWaiters {
  readonly #redis: Redis;
  readonly #polls = new Map<string, Promise<IdempotencyState>>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /** Resolves once the request that holds the key has ended or is gone. @throws where Redis stays out of reach. */
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
