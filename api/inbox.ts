import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { inboxKey, type Outcome, readEntry, type SearchTrace } from "../shared/answers.ts";
import type { Context } from "../shared/context.ts";
import { newId } from "../shared/ids.ts";
import { throttledWarning } from "../shared/log.ts";
import { openBlocking } from "../shared/redis/connect.ts";

const readMax = 256;
const blockMs = 1_000;
const trimEveryMs = 1_000;

export interface Arrival {
  outcome: Outcome;
  trace: SearchTrace;
}

/** Where the answers for this API process arrive, each given to the one request that waits for it. */
export class Inbox {
  readonly key = inboxKey(newId("api"));
  readonly #waiting = new Map<string, (arrival: Arrival) => void>();
  readonly #redis: Redis;
  readonly #warn: (error: unknown) => void;
  #lastId = "0";
  #trimAtMs = 0;

  constructor(redis: Redis, warn: (error: unknown) => void) {
    this.#redis = redis;
    this.#warn = warn;
  }

  /** Begins to listen for a request's outcome; to be called before its job exists. */
  expect(requestId: string): Promise<Arrival> {
    return new Promise((resolve) => this.#waiting.set(requestId, resolve));
  }

  /** Ends the wait; an outcome that comes later is dropped, since its request has been answered another way. */
  forget(requestId: string): void {
    this.#waiting.delete(requestId);
  }

  /** Reads until the signal is given. A broken connection goes on behind the last entry that was read. */
  async read(blocking: Redis, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        const streams = await blocking.xreadBuffer(
          "COUNT",
          readMax,
          "BLOCK",
          blockMs,
          "STREAMS",
          this.key,
          this.#lastId,
        );
        for (const [id, fields] of streams?.[0]?.[1] ?? []) {
          this.#lastId = id.toString();
          this.#take(fields);
        }
        this.#trim();
      } catch (error) {
        if (!stop.aborted) this.#warn(error);
      }
    }
  }

  #take(fields: readonly Buffer[]): void {
    try {
      const { requestId, outcome, trace } = readEntry(fields);
      this.#waiting.get(requestId)?.({ outcome, trace });
    } catch (error) {
      this.#warn(error);
    }
  }

  #trim(): void {
    const now = performance.now();
    if (now < this.#trimAtMs || this.#lastId === "0") return;
    this.#trimAtMs = now + trimEveryMs;
    void this.#redis.xtrim(this.key, "MINID", this.#lastId).catch(this.#warn);
  }
}

export function openInbox(context: Context): Inbox {
  const { config, log, closing } = context;
  const inbox = new Inbox(context.redis, throttledWarning(log, "the inbox has a problem"));
  const blocking = openBlocking({ url: config.REDIS_URL, name: "api-inbox", log, closing });
  const stop = new AbortController();
  const reading = inbox.read(blocking, stop.signal);
  closing.push("inbox", () => {
    stop.abort();
    blocking.disconnect();
    // While Redis is away the read under way never ends; nothing is lost by not waiting for it.
    return Promise.race([reading, sleep(blockMs)]);
  });
  return inbox;
}
