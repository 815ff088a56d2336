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
