/**
 * A fair semaphore: runs steps, at most `atOnce` at a time. Owners take turns, and the steps of one run in the order of their
 * calls. A step that fails does not stop the next one.
 */
export class Semaphore {
  /** Steps by owner. The owner whose last turn is the longest ago comes first. */
  readonly #waiting = new Map<string, (() => void)[]>();
  #free: number;

  constructor(atOnce = 1) {
    this.#free = atOnce;
  }

  /** Resolves or rejects as the step does. */
  async run<T>(step: () => Promise<T>, owner = ""): Promise<T> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#wait(owner, resolve));
    try {
      return await step();
    } finally {
      // A turn that ends goes to the next step, so that one that comes now does not overtake it.
      const next = this.#next(owner);
      if (next) next();
      else this.#free += 1;
    }
  }

  #wait(owner: string, start: () => void): void {
    const steps = this.#waiting.get(owner);
    if (steps) steps.push(start);
    else this.#waiting.set(owner, [start]);
  }

  /** @param last the owner of the turn that ends. */
  #next(last: string): (() => void) | undefined {
    this.#moveBack(last);
    const [first] = this.#waiting.keys();
    if (first === undefined) return undefined;
    const next = this.#waiting.get(first)?.shift();
    this.#moveBack(first);
    return next;
  }

  /** Puts an owner behind the others, or forgets one without steps. */
  #moveBack(owner: string): void {
    const steps = this.#waiting.get(owner);
    this.#waiting.delete(owner);
    if (steps && steps.length > 0) this.#waiting.set(owner, steps);
  }
}
