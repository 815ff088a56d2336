import type { Service } from "../processes/service.ts";

/**
 * Callers that search without a pause, and never retry. `search` gets the number of the search.
 *
 *   const stream = new SearchStream(service, 2, (nth) => service.search(token, { keyword: `search ${nth}` }));
 *   await stream.more(10);       // what was changed has been used
 *   await stream.end();
 */
export class SearchStream<Answer extends { status: number; text: string }> {
  /** The answers with status 200. */
  readonly answers: Answer[] = [];
  /** What failed: the status and the body, or why there was no answer. */
  readonly failures: string[] = [];
  readonly #service: Service;
  readonly #search: (nth: number) => Promise<Answer>;
  readonly #callers: Promise<void>[];
  #sent = 0;
  #hasEnded = false;

  constructor(service: Service, callers: number, search: (nth: number) => Promise<Answer>) {
    this.#service = service;
    this.#search = search;
    this.#callers = Array.from({ length: callers }, () => this.#ask());
  }

  async #ask(): Promise<void> {
    while (!this.#hasEnded) {
      this.#sent += 1;
      await this.#search(this.#sent).then(
        (answer) =>
          answer.status === 200 ? this.answers.push(answer) : this.failures.push(`${answer.status} ${answer.text}`),
        (error: unknown) => this.failures.push(String(error)),
      );
    }
  }

  /** Waits until this many searches more were answered that began after now. */
  async more(count: number): Promise<void> {
    const enough = this.answers.length + this.#callers.length + count;
    await this.#service.until(async () => this.answers.length >= enough || this.failures.length > 0);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await Promise.all(this.#callers);
  }
}
