import { setTimeout as sleep } from "node:timers/promises";

/**
 * Collects what comes while the previous batch is under way, and runs it as the next one. An item alone goes out in the
 * same turn of the event loop, and batches grow by themselves under load.
 */
export class Batcher<Item> {
  readonly #run: (items: Item[]) => Promise<void>;
  readonly #sizeMax: number;
  readonly #atOnceMax: number;
  #waiting: Item[] = [];
  #running = 0;
  #scheduled = false;
  #idle: (() => void)[] = [];

  /**
   * @param options.run must not reject: it answers for each of its items itself.
   * @param options.pauseMs how long a batch rests before the next one, for work that nobody waits for.
   */
  constructor(options: {
    sizeMax: number;
    atOnceMax: number;
    pauseMs?: number;
    run: (items: Item[]) => Promise<void>;
  }) {
    const { run, pauseMs } = options;
    this.#run = pauseMs === undefined ? run : (items) => run(items).then(() => sleep(pauseMs));
    this.#sizeMax = options.sizeMax;
    this.#atOnceMax = options.atOnceMax;
  }

  add(item: Item): void {
    this.#waiting.push(item);
    if (this.#scheduled || this.#running >= this.#atOnceMax) return;
    this.#scheduled = true;
    // After the input of this turn, so that what arrived together leaves together.
    setImmediate(() => {
      this.#scheduled = false;
      this.#start();
    });
  }

  /** Resolves once nothing waits and nothing runs. */
  async idle(): Promise<void> {
    if (this.#waiting.length === 0 && this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  #start(): void {
    while (this.#waiting.length > 0 && this.#running < this.#atOnceMax) {
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
