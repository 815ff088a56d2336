import type { Redis } from "ioredis";
import { replyInboxKey, type SearchOutcome, readReply, type SearchTrace } from "../../shared/queue/replies.ts";
import { waitFor } from "../../shared/concurrency/with-timeout.ts";
import type { Context } from "../../shared/context.ts";
import { newId } from "../../shared/ids.ts";
import { throttledWarning } from "../../shared/log.ts";
import { openBlocking } from "../../shared/redis/connect.ts";

const readMax = 256;
const blockMs = 1_000;
const trimEveryMs = 1_000;

export interface Reply {
  outcome: SearchOutcome;
  trace: SearchTrace;
}

/** Where the answers for this API process arrive, each given to the one request that waits for it. */
export class ReplyInbox {
  readonly key = replyInboxKey(newId("api"));
  readonly #waiting = new Map<string, (arrival: Reply) => void>();
  readonly #redis: Redis;
  readonly #warn: (error: unknown) => void;
  #lastId = "0";
  #trimAtMs = 0;

  constructor(redis: Redis, warn: (error: unknown) => void) {
    this.#redis = redis;
    this.#warn = warn;
  }

  /** Begins to listen for a request's outcome; to be called before its job exists. */
  expect(requestId: string): Promise<Reply> {
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
      const { requestId, outcome, trace } = readReply(fields);
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

export function openReplyInbox(context: Context): ReplyInbox {
  const { config, log, shutdown } = context;
  const inbox = new ReplyInbox(context.redis, throttledWarning(log, "the inbox has a problem"));
  const blocking = openBlocking({ url: config.REDIS_URL, name: "api-inbox", log, shutdown });
  const stop = new AbortController();
  const reading = inbox.read(blocking, stop.signal);
  shutdown.register("inbox", () => {
    stop.abort();
    blocking.disconnect();
    // While Redis is away the read under way never ends; nothing is lost by not waiting for it.
    return waitFor(reading, { timeoutMs: blockMs });
  });
  return inbox;
}
