import { setTimeout as sleep } from "node:timers/promises";

/**
 * Collects items while earlier batches run and passes them on together. Without load, an item leaves in the same turn of
 * the event loop, without a timer; under load, batches grow by themselves.
 */
export class Batcher<Item> {
  readonly #run: (items: Item[]) => Promise<void>;
  readonly #sizeMax: number;
  readonly #concurrency: number;
  #waiting: Item[] = [];
  #running = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  /**
   * @param options.run must not reject: it reports the outcome of each item itself.
   * @param options.concurrency batches that run at the same time.
   * @param options.pauseMs time between two batches, for work that no caller waits for.
   */
  constructor(options: {
    sizeMax: number;
    concurrency: number;
    pauseMs?: number;
    run: (items: Item[]) => Promise<void>;
  }) {
    const { run, pauseMs } = options;
    this.#run = pauseMs === undefined ? run : (items) => run(items).then(() => sleep(pauseMs));
    this.#sizeMax = options.sizeMax;
    this.#concurrency = options.concurrency;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    if (this.#scheduled || this.#running >= this.#concurrency) return;
    this.#scheduled = true;
    // After the input of this turn, so that items that arrived together leave together.
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  /** Resolves once no item waits and no batch runs. */
  async idle(): Promise<void> {
    if (this.#waiting.length === 0 && this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #start(): void {
    while (this.#waiting.length > 0 && this.#running < this.#concurrency) {
      const batch = this.#waiting.splice(0, this.#sizeMax);
      this.#running += 1;
      void this.#run(batch).finally(() => {
        this.#running -= 1;
        this.#start();
      });
    }
    if (this.#waiting.length > 0 || this.#running > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}

interface Pending<Key, Value> {
  key: Key;
  resolve: (value: Value | Promise<Value> | undefined) => void;
  reject: (error: unknown) => void;
}

/** Looks things up together with all others that are asked for at the same time. Equal keys are looked up once. */
export class BatchedLookup<Key, Value> {
  readonly #nameOf: (key: Key) => string;
  readonly #read: (keys: Key[]) => Promise<ReadonlyMap<string, Value | Promise<Value>>>;
  readonly #batches: Batcher<Pending<Key, Value>>;

  /**
   * @param options.nameOf two keys are equal if their names are.
   * @param options.read reads a batch. @returns what was found, by the names of the keys. A promise that rejects fails its key alone.
   * @param options.pauseMs time between two batches: then their number is bounded by time, not by the keys.
   */
  constructor(options: {
    sizeMax: number;
    concurrency: number;
    pauseMs?: number;
    nameOf: (key: Key) => string;
    read: (keys: Key[]) => Promise<ReadonlyMap<string, Value | Promise<Value>>>;
  }) {
    this.#nameOf = options.nameOf;
    this.#read = options.read;
    this.#batches = new Batcher({ ...options, run: (batch) => this.#run(batch) });
  }

  /** @returns undefined if there is nothing under this key. @throws what the reading of its batch, or of its own value, throws. */
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
