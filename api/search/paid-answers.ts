import { LRUCache } from "lru-cache";
import { BatchedLookup } from "../../shared/concurrency/batched-lookup.ts";
import { nameOfKey, type OwnedKey, type PaidKey, readPaidKeys } from "../../shared/credits/paid-keys.ts";
import { readStoredAnswers, type StoredAnswer } from "../../shared/credits/stored-answers.ts";
import type { Database } from "../../shared/database/pool.ts";
import type { Metrics } from "../../shared/metrics.ts";

const keysPerBatchMax = 1_000;
// Bounds the answers in memory that no caller gets yet.
const answersPerBatchMax = 16;
const batchConcurrency = 2;
// All searches of organizations that were refused lately share one look-up per pause, however many they send.
const refusedPauseMs = 100;
const refusedForMs = 1_000;
const organizationsCachedMax = 10_000;

/**
 * What Postgres has under Idempotency-Keys: whether a key has paid, and the answer. Every search with a key asks before it
 * is admitted, in a batch with all others that ask at the same time.
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

  /** A search of this organization was refused: for a second the next ones share their look-ups. */
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
