/** Runs steps in the order of their calls, at most `atOnce` at a time. A step that fails does not stop the next one. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(atOnce = 1) {
    this.#free = atOnce;
  }

  /** Resolves or rejects as the step does. */
  async run<T>(step: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await step();
    } finally {
      // A turn that ends goes to the next step, so that one that comes now does not overtake it.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free += 1;
    }
  }
}
