import { Batcher } from "./batcher.ts";

interface Pending<Key, Value> {
  key: Key;
  resolve: (value: Value | undefined) => void;
  reject: (error: unknown) => void;
}

/** Looks things up together with all others that are asked for at the same time. Equal keys are looked up once. */
export class BatchedLookup<Key, Value> {
  readonly #nameOf: (key: Key) => string;
  readonly #read: (keys: Key[]) => Promise<ReadonlyMap<string, Value>>;
  readonly #batches: Batcher<Pending<Key, Value>>;

  /**
   * @param options.nameOf two keys are equal if their names are.
   * @param options.read reads a batch. @returns what was found, by the names of the keys.
   * @param options.pauseMs time between two batches: then their number is bounded by time, not by the keys.
   */
  constructor(options: {
    sizeMax: number;
    concurrency: number;
    pauseMs?: number;
    nameOf: (key: Key) => string;
    read: (keys: Key[]) => Promise<ReadonlyMap<string, Value>>;
  }) {
    this.#nameOf = options.nameOf;
    this.#read = options.read;
    this.#batches = new Batcher({ ...options, run: (batch) => this.#run(batch) });
  }

  /** @returns undefined if there is nothing under this key. @throws what the reading of its batch throws. */
  find(key: Key): Promise<Value | undefined> {
    return new Promise((resolve, reject) => this.#batches.add({ key, resolve, reject }));
  }

  async #run(batch: Pending<Key, Value>[]): Promise<void> {
    const keys = new Map(batch.map(({ key }) => [this.#nameOf(key), key]));
    try {
      const found = await this.#read([...keys.values()]);
      for (const { key, resolve } of batch) resolve(found.get(this.#nameOf(key)));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }
}
