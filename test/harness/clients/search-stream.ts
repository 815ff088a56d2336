import type { Api, Service } from "../processes/service.ts";

const inFlight = 2; // More would only load the machine: each search passes through everything that is replaced.
const untilAnotherMs = 60_000;

/**
 * Callers that search without a pause, at one API after the other as a load balancer sends them, and never retry.
 *
 *   const stream = new SearchStream(service, token, api);
 *   await stream.more(10);       // what was changed has been used
 *   await stream.end();
 */
export class SearchStream {
  /** What failed: the status and the body, or why there was no answer. */
  readonly failures: string[] = [];
  answered = 0;
  /** The API that gets the next searches. */
  api: Api;
  readonly #service: Service;
  readonly #token: string;
  readonly #callers: Promise<void>[];
  #sent = 0;
  #hasEnded = false;

  constructor(service: Service, token: string, api: Api) {
    this.#service = service;
    this.#token = token;
    this.api = api;
    this.#callers = Array.from({ length: inFlight }, () => this.#search());
  }

  async #search(): Promise<void> {
    while (!this.#hasEnded) {
      this.#sent += 1;
      const api = this.#service.apis.indexOf(this.api);
      const keyword = `search ${this.#sent}`;
      await this.#service.search(this.#token, { keyword }, { api }).then(
        ({ status, text }) => (status === 200 ? (this.answered += 1) : this.failures.push(`${status} ${text}`)),
        (error: unknown) => this.failures.push(String(error)),
      );
    }
  }

  /** Waits until this many searches more were answered that began after now. */
  async more(count: number): Promise<void> {
    const enough = this.answered + inFlight + count;
    await this.#service.until(async () => this.answered >= enough || this.failures.length > 0, untilAnotherMs);
  }

  async end(): Promise<void> {
    this.#hasEnded = true;
    await Promise.all(this.#callers);
  }
}
