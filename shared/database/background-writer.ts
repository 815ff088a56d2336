import { Batcher } from "../concurrency/batcher.ts";
import { retryWhile } from "../concurrency/retry.ts";
import { isTransient } from "./transient-errors.ts";

/** A writer writes at most five batches a second. */
const batchPauseMs = 200;
const retryPauseMs = 1_000;

/**
 * Writes items to Postgres in the background, in batches. Items wait in memory while Postgres is slow or down. One is lost if too
 * many wait, if Postgres refuses it, or if the process dies first.
 */
export class BackgroundWriter<Item> {
  readonly #options: BackgroundWriting<Item>;
  readonly #batches: Batcher<Item>;
  #waiting = 0;
  #isClosing = false;

  constructor(options: BackgroundWriting<Item>) {
    this.#options = options;
    const run = (batch: Item[]) => this.#write(batch);
    this.#batches = new Batcher({ sizeMax: options.sizeMax, concurrency: 1, pauseMs: batchPauseMs, run });
  }

  /** Takes an item. Returns at once and never throws. */
  add(item: Item): void {
    if (this.#waiting >= this.#options.waitingMax) return this.drop();
    this.#waiting += 1;
    this.#batches.add(item);
  }

  /** Counts an item as dropped that there is no room for, here or before it came here. */
  drop(): void {
    this.#options.count("dropped", 1);
  }

  /** Writes what waits. From now on a batch that Postgres does not take is not tried again. */
  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#batches.idle();
  }

  async #write(batch: Item[]): Promise<void> {
    const { write, warn, count } = this.#options;
    const mayRetry = (error: unknown) => {
      warn(error);
      return isTransient(error) && !this.#isClosing;
    };
    const written = await retryWhile({ pauseMs: retryPauseMs, mayRetry }, () => write(batch)).catch(() => 0);
    this.#waiting -= batch.length;
    count("written", written);
    count("dropped", batch.length - written);
  }
}

interface BackgroundWriting<Item> {
  /** The most items that wait; further ones are dropped. */
  waitingMax: number;
  /** The most items of a batch. */
  sizeMax: number;
  /** Writes a batch. Writing it again changes nothing. @returns how many of its items Postgres has by now. */
  write: (batch: Item[]) => Promise<number>;
  warn: (error: unknown) => void;
  count: (outcome: "written" | "dropped", items: number) => void;
}
