import { arriveAt, Callers } from "../faults/scenarios/callers.ts";
import type { Service } from "../harness/processes/service.ts";

/** The arrival rate of searches: enough for every alert that needs a minimum of traffic, and little work for the machine. */
export const searchesPerSecond = 5;

const judged = 10;

/** Distinct searches at a steady rate, over all running APIs. */
export class SteadyLoad {
  readonly #callers = new Callers();
  readonly #statuses: number[] = [];
  readonly #ended: Promise<unknown>;
  #isOver = false;

  constructor(service: Service, token: string, depth = 10) {
    const call = async (count: number) => {
      const urls = service.apis.filter(({ hasEnded }) => !hasEnded).map(({ url }) => url);
      const query = { keyword: `drill ${count}`, depth };
      const url = urls[count % Math.max(1, urls.length)];
      const answer = url === undefined ? undefined : await this.#callers.search(url, token, query);
      this.#statuses.push(answer?.status ?? 0);
    };
    const isEnough = () => this.#isOver;
    const forMs = Number.MAX_SAFE_INTEGER;
    this.#ended = arriveAt({ perSecond: searchesPerSecond, forMs, isEnough, call });
  }

  /** Whether the last searches that ended were all answered. */
  get isServed(): boolean {
    const last = this.#statuses.slice(-judged);
    return last.length === judged && last.every((status) => status === 200);
  }

  /** Ends the load and its running searches. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#callers.close();
    await this.#ended;
  }
}
