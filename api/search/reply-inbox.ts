import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import type { Context } from "../../shared/process/context.ts";
import { InFlightEntries } from "../../shared/concurrency/in-flight-entries.ts";
import { waitFor, withTimeout } from "../../shared/concurrency/wait-for.ts";
import { newId } from "../../shared/ids.ts";
import { throttledWarning } from "../../shared/log.ts";
import { protocolTimes } from "../../shared/protocol-times.ts";
import {
  readReply,
  type Reply,
  replyInboxKey,
  type SearchOutcome,
  type SearchTrace,
  sendReply,
} from "../../shared/queue/replies.ts";

const readMax = 256;
const blockMs = protocolTimes.redisBlockMs;
const retryPauseMs = 100;
const trimEveryMs = 1_000;
const checkTimeoutMs = 500;

// What the inbox sends to itself. No request gets it.
const ownOutcome: SearchOutcome = { kind: "failure", code: "internal_error", details: {} };
const ownTrace: SearchTrace = {
  worker: "none",
  provider: "none",
  from: "provider",
  calls: [],
  costMicroUsd: 0,
  queueMs: 0,
  runMs: 0,
};

/** The Redis stream of this API process, where workers append its replies, and the requests that wait for them. */
export class ReplyInbox {
  readonly key = replyInboxKey(newId("api"));
  readonly #waiting = new InFlightEntries<(reply: Reply) => void>();
  readonly #redis: Redis;
  readonly #warn: (error: unknown) => void;
  #lastId = "0";
  #idAtLastLook = "0";
  #trimAtMs = 0;

  constructor(redis: Redis, warn: (error: unknown) => void) {
    this.#redis = redis;
    this.#warn = warn;
  }

  /** Waits for a request's reply. Call it before the job is enqueued, and {@link forget} afterwards. */
  expect(requestId: string): Promise<Reply> {
    return new Promise((resolve) => this.#waiting.set(requestId, resolve));
  }

  /** Ends the wait. A reply that comes later is dropped: the request has ended another way. */
  forget(requestId: string): void {
    this.#waiting.delete(requestId);
  }

  /** Sends a reply to itself. @throws if Redis does not answer or takes no writes, or if the reply is not read in time. */
  async check(): Promise<void> {
    const requestId = newId("req");
    const arrival = this.expect(requestId);
    try {
      await sendReply(this.#redis, { inbox: this.key, requestId, outcome: ownOutcome, trace: ownTrace });
      await withTimeout(checkTimeoutMs, arrival);
    } finally {
      this.forget(requestId);
    }
  }

  /** For the watchdog: whether there are replies, and it has read none since the last call. */
  async leavesRepliesUnread(): Promise<boolean> {
    const hasReadNone = this.#lastId === this.#idAtLastLook;
    this.#idAtLastLook = this.#lastId;
    const [last] = await this.#redis.xrevrange(this.key, "+", "-", "COUNT", 1);
    return hasReadNone && last !== undefined && last[0] !== this.#lastId;
  }

  /**
   * Reads until `stop` is aborted. After a lost connection it continues behind the last entry that it has read. If that
   * entry is gone, Redis has lost the stream, and its clock may have gone back since: a new stream can have lower ids, so
   * it is read from its beginning.
   */
  async read(blocking: Redis, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        const from = ["STREAMS", this.key, this.#lastId] as const;
        const streams = await blocking.xreadBuffer("COUNT", readMax, "BLOCK", blockMs, ...from);
        const entries = streams?.[0]?.[1] ?? [];
        for (const [id, fields] of entries) {
          this.#lastId = id.toString();
          void this.#dispatch(fields);
        }
        if (entries.length > 0) this.#trim();
        else await this.#checkPosition(blocking);
      } catch (error) {
        if (stop.aborted) return;
        this.#warn(error);
        await sleep(retryPauseMs);
      }
    }
  }

  async #dispatch(fields: readonly Buffer[]): Promise<void> {
    try {
      const { requestId, ...reply } = await readReply(fields);
      this.#waiting.get(requestId)?.(reply);
    } catch (error) {
      this.#warn(error);
    }
  }

  /** Trimming keeps the entry that was read last. If it is gone, Redis has lost the stream. */
  async #checkPosition(blocking: Redis): Promise<void> {
    if (this.#lastId === "0") return;
    const lastRead = await blocking.xrange(this.key, this.#lastId, this.#lastId);
    if (lastRead.length === 0) this.#lastId = "0";
  }

  #trim(): void {
    const nowMs = performance.now();
    if (nowMs < this.#trimAtMs) return;
    this.#trimAtMs = nowMs + trimEveryMs;
    void this.#redis.xtrim(this.key, "MINID", this.#lastId).catch(this.#warn);
  }
}

type ReplyInboxParts = Pick<Context, "connections" | "redis" | "log" | "shutdown">;

export function openReplyInbox({ connections, redis, log, shutdown }: ReplyInboxParts): ReplyInbox {
  const inbox = new ReplyInbox(redis, throttledWarning(log, "reading the reply inbox failed"));
  const blocking = connections.openBlocking("api-inbox");
  const stop = new AbortController();
  const reading = inbox.read(blocking, stop.signal);
  shutdown.register("inbox", () => {
    stop.abort();
    blocking.disconnect();
    // A read never ends while Redis is unreachable. Abandoning it loses nothing.
    return waitFor(reading, { timeoutMs: blockMs });
  });
  return inbox;
}
