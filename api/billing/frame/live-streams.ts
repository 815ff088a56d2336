import { Turns } from "../../../shared/concurrency/turns.ts";
import { CallerError } from "../../../shared/errors.ts";
import type { Metrics } from "../../../shared/metrics.ts";

const sessionStreamsMax = 5;
const organizationStreamsMax = 20;
const processStreamsMax = 100;
/** The other streams of a process are for organizations that have none, so that five with 20 each leave some to others. */
const furtherStreamsMax = 50;
const retryAfterMs = 30_000;

const processKey = "process";

/**
 * Limits live-update streams, per session, per organization and per process, and the load that they put on Postgres. An open
 * stream costs a read of Redis every second, so without limits a script could open enough of them to slow down searches.
 */
export class LiveStreams {
  readonly #gauge: Metrics["liveStreams"];
  readonly #open = new Map<string, number>();
  /** One read of the ledger at a time: however many pages are open, other people's pages find a free connection. */
  readonly reads = new Turns();

  constructor({ liveStreams }: Pick<Metrics, "liveStreams">) {
    this.#gauge = liveStreams;
    liveStreams.set(0);
  }

  /** Counts a stream as open. @returns what ends it. @throws {CallerError} `rate_limited` at one of the limits. */
  enter(sessionIdHash: string, organizationId: string): () => void {
    const isFirst = !this.#open.has(organizationId);
    const limits = new Map([
      [sessionIdHash, sessionStreamsMax],
      [organizationId, organizationStreamsMax],
      [processKey, isFirst ? processStreamsMax : furtherStreamsMax],
    ]);
    for (const [key, limit] of limits) {
      if ((this.#open.get(key) ?? 0) >= limit)
        throw new CallerError("rate_limited", { reason: "live_streams", limit, retryAfterMs });
    }
    for (const key of limits.keys()) this.#add(key, 1);
    return () => {
      for (const key of limits.keys()) this.#add(key, -1);
    };
  }

  #add(key: string, change: number): void {
    const open = (this.#open.get(key) ?? 0) + change;
    if (open > 0) this.#open.set(key, open);
    else this.#open.delete(key);
    if (key === processKey) this.#gauge.set(open);
  }
}
