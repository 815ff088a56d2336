import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { LRUCache } from "lru-cache";
import { BatchedLookup } from "../../shared/concurrency/batcher.ts";
import { type IdempotencyState, readIdempotencyState } from "../../shared/credits/holds.ts";
import {
  nameOfKey,
  type OwnedKey,
  type PaidKey,
  readPaidKeys,
  readStoredAnswers,
  type StoredAnswer,
} from "../../shared/credits/stored-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import type { Metrics } from "../../shared/metrics.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";

const keysPerBatchMax = 1_000;
// Bounds the answers in memory that no caller gets yet.
const answersPerBatchMax = 16;
const batchConcurrency = 2;
// However many searches recently refused organizations send, they share one lookup per pause.
const refusedPauseMs = 100;
const refusedForMs = 1_000;
const organizationsCachedMax = 10_000;
const firstPollMs = 10;
const pollFailuresMax = 20;

/**
 * What Postgres has under Idempotency-Keys: whether a key has paid, and the answer. Every search with a key asks before its
 * admission. Searches that ask at the same time share a query.
 */
export class PaidAnswers {
  readonly #keys: BatchedLookup<OwnedKey, PaidKey>;
  readonly #keysOfRefused: BatchedLookup<OwnedKey, PaidKey>;
  readonly #answers: BatchedLookup<OwnedKey, StoredAnswer>;
  readonly #refusedLately = new LRUCache<string, true>({ max: organizationsCachedMax, ttl: refusedForMs });

  constructor({ database, metrics }: { database: Database; metrics: Metrics }) {
    const keys = {
      sizeMax: keysPerBatchMax,
      nameOf: nameOfKey,
      read: measured(metrics, "keys", (batch: OwnedKey[]) => readPaidKeys(database, batch)),
    };
    this.#keys = new BatchedLookup({ ...keys, concurrency: batchConcurrency });
    this.#keysOfRefused = new BatchedLookup({ ...keys, concurrency: 1, pauseMs: refusedPauseMs });
    this.#answers = new BatchedLookup({
      sizeMax: answersPerBatchMax,
      concurrency: batchConcurrency,
      nameOf: nameOfKey,
      read: measured(metrics, "answers", (batch) => readStoredAnswers(database, batch)),
    });
  }

  /** @returns undefined if the key has not paid. @throws if Postgres does not answer. */
  findKey(key: OwnedKey): Promise<PaidKey | undefined> {
    const keys = this.#refusedLately.has(key.organizationId) ? this.#keysOfRefused : this.#keys;
    return keys.find(key);
  }

  /** @returns undefined if the key has not paid, or has expired meanwhile. @throws if Postgres does not answer. */
  findAnswer(key: OwnedKey): Promise<StoredAnswer | undefined> {
    return this.#answers.find(key);
  }

  /** Records that a search was refused: for a second, further searches of the organization share their lookups. */
  noteRefusal(organizationId: string): void {
    this.#refusedLately.set(organizationId, true);
  }
}

function measured<Found>({ keyLookups }: Metrics, of: string, read: (batch: OwnedKey[]) => Promise<Found>) {
  return async (batch: OwnedKey[]): Promise<Found> => {
    const stop = keyLookups.startTimer({ of });
    try {
      return await read(batch);
    } finally {
      stop();
    }
  };
}

/** Until when (`performance.now()`) the repeat that has the most time waits. */
interface Latest {
  untilMs: number;
}

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
  readonly #polls = new Map<string, { latest: Latest; ended: Promise<IdempotencyState> }>();

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Waits until the key's first request has left `running`, or `untilMs` (`performance.now()`) has passed. If another repeat of the
   * key has more time, it waits as long as that one.
   * @throws if Redis stays unreachable.
   */
  ended(organizationId: string, keyHash: string, untilMs: number): Promise<IdempotencyState> {
    const name = `${organizationId} ${keyHash}`;
    const running = this.#polls.get(name);
    if (running) {
      running.latest.untilMs = Math.max(running.latest.untilMs, untilMs);
      return running.ended;
    }
    const latest = { untilMs };
    const ended = this.#poll(organizationId, keyHash, latest).finally(() => this.#polls.delete(name));
    this.#polls.set(name, { latest, ended });
    return ended;
  }

  async #poll(organizationId: string, keyHash: string, latest: Latest): Promise<IdempotencyState> {
    let pauseMs = firstPollMs;
    let failures = 0;
    for (;;) {
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 1.5, protocolTimes.idempotencyPollMaxMs);
      try {
        const state = await readIdempotencyState(this.#redis, organizationId, keyHash);
        if (state.outcome !== "running" || performance.now() > latest.untilMs) return state;
      } catch (error) {
        failures += 1;
        if (failures > pollFailuresMax) throw error;
      }
    }
  }
}
