import { setTimeout as sleep } from "node:timers/promises";
import type { SupervisedProcess } from "../../harness/processes/supervised-process.ts";

const probeEveryMs = 500;
const probeTimeoutMs = 1_000;

/** Sends callers round-robin to the API processes that passed their last readiness probe. */
export class LoadBalancer {
  readonly #targets = new Map<string, { opsUrl: string; url: string }>();
  #ready: string[] = [];
  #turn = 0;
  readonly #stop = new AbortController();
  readonly #probing: Promise<void>;

  private constructor() {
    this.#probing = this.#probe();
  }

  static async before(apis: readonly SupervisedProcess[]): Promise<LoadBalancer> {
    const balancer = new LoadBalancer();
    for (const api of apis) balancer.add(api);
    for (const { url } of apis) await balancer.untilReady(url ?? "");
    return balancer;
  }

  /** Adds the running process of an API. */
  add({ url, opsUrl }: SupervisedProcess): void {
    if (url === undefined || opsUrl === undefined) throw new Error("the API does not listen yet");
    this.#targets.set(url, { url, opsUrl });
  }

  /** Stops sending callers to this address. */
  remove(url: string): void {
    this.#targets.delete(url);
    this.#ready = this.#ready.filter((ready) => ready !== url);
  }

  /** Waits until callers are sent to this address. */
  async untilReady(url: string): Promise<void> {
    while (!this.#ready.includes(url)) await sleep(20);
  }

  /** Of the ready ones; of all if none answered its last probe in time, as on a slow machine. */
  next(): string {
    this.#turn += 1;
    const urls = this.#ready.length > 0 ? this.#ready : [...this.#targets.keys()];
    return urls[this.#turn % urls.length] ?? "";
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#probing;
  }

  async #probe(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const probed = await Promise.all(
        [...this.#targets.values()].map(async (target) => ((await isReady(target.opsUrl)) ? [target.url] : [])),
      );
      this.#ready = probed.flat().filter((url) => this.#targets.has(url));
      await sleep(probeEveryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function isReady(opsUrl: string): Promise<boolean> {
  try {
    return (await fetch(`${opsUrl}/readyz`, { signal: AbortSignal.timeout(probeTimeoutMs) })).ok;
  } catch {
    return false;
  }
}
