/** Runs steps one after the other, in the order in which they came. A step that fails does not stop the next one. */
export class Turns {
  #last: Promise<unknown> = Promise.resolve();

  run<T>(step: () => Promise<T>): Promise<T> {
    const result = this.#last.then(step);
    this.#last = result.catch(() => undefined);
    return result;
  }
}
