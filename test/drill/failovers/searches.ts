import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Agent } from "undici";
import type { SupervisedProcess } from "../../harness/processes/supervised-process.ts";
import { type Attempt, type AuditedCustomer, priceMils } from "../../faults/audit/evidence.ts";
import { sendSearch } from "../../faults/audit/send-search.ts";
import { arriveAt } from "../../faults/scenarios/callers.ts";
import { mayBePrompt } from "./outage.ts";

export const deadlineMs = 10_000;
/** An answer may come this long after the deadline. */
export const lateMsMax = 2_000;

const perSecond = 20;
/** This many searches in a row that are answered at once are an end of the outage. */
const judged = 40;
/** Every n-th search has an Idempotency-Key. */
const keyedEvery = 3;
const retriesMax = 10;
const retryAfterMs = 500;

export interface Searcher extends AuditedCustomer {
  tokenId: string;
}

/** Distinct searches at an even rate over two APIs, some of them under keys, and what their callers know about each. */
export class Searches {
  /** In the order in which they were sent. Those that have not ended end at Infinity. */
  readonly attempts: Attempt[] = [];
  readonly #apis: readonly SupervisedProcess[];
  readonly #searchers: readonly Searcher[];
  readonly #agent = new Agent({ connections: 256, headersTimeout: 0, bodyTimeout: 0 });
  readonly #ended: Promise<unknown>;
  #isOver = false;

  constructor(apis: readonly SupervisedProcess[], searchers: readonly Searcher[]) {
    this.#apis = apis;
    this.#searchers = searchers;
    this.#ended = arriveAt({
      perSecond,
      forMs: Number.MAX_SAFE_INTEGER,
      isEnough: () => this.#isOver,
      call: (count) => this.#search(count),
    });
  }

  /** Whether enough searches since then were answered at once, and none waits. */
  isFlowing(sinceMs: number): boolean {
    const nowMs = performance.now();
    const last = this.attempts.filter(({ sentAtMs }) => sentAtMs >= sinceMs).slice(-judged);
    const isWaiting = this.attempts.some((attempt) => attempt.endedAtMs > nowMs && !mayBePrompt(attempt, nowMs));
    return last.length === judged && !isWaiting && last.every((attempt) => mayBePrompt(attempt, nowMs));
  }

  /** Ends the load, and waits for the searches under way. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await this.#ended;
  }

  /** Repeats the searches under keys that were not answered. @returns these attempts. */
  async repeatKeys(): Promise<Attempt[]> {
    const unanswered = this.attempts.filter(({ key, answer }) => key !== undefined && answer?.status !== 200);
    const repeated = await Promise.all(
      unanswered.map(async (first) => {
        for (let retries = 0; ; retries += 1) {
          const attempt = await this.#send({ ...first, api: first.api === 0 ? 1 : 0 });
          if (attempt.answer?.status === 200 || retries === retriesMax) return attempt;
          await sleep(retryAfterMs);
        }
      }),
    );
    return repeated;
  }

  async close(): Promise<void> {
    this.#isOver = true;
    await this.#agent.destroy();
    await this.#ended;
  }

  async #search(count: number): Promise<void> {
    const searcher = this.#searchers[count % this.#searchers.length];
    if (!searcher) return;
    const { organizationId, tokenId } = searcher;
    const key = count % keyedEvery === 0 ? randomUUID() : undefined;
    const asked = { organizationId, tokenId, keyword: `failover ${count}`, key, priceMils };
    await this.#send({ ...asked, api: count % 2 === 0 ? 0 : 1 }, this.attempts);
  }

  async #send(asked: Omit<Attempt, "sentAtMs" | "endedAtMs">, into: Attempt[] = []): Promise<Attempt> {
    const { answer: _answer, noAnswer: _noAnswer, ...search } = asked;
    const attempt: Attempt = { ...search, sentAtMs: performance.now(), endedAtMs: Number.POSITIVE_INFINITY };
    into.push(attempt);
    const address = this.#apis[asked.api]?.url ?? "http://127.0.0.1:1"; // Where no API listens.
    await sendSearch(attempt, {
      url: `${address}/v1/serp/search`,
      token: this.#searchers.find(({ tokenId }) => tokenId === asked.tokenId)?.token ?? "",
      dispatcher: this.#agent,
      signal: AbortSignal.timeout(2 * (deadlineMs + lateMsMax)),
      whenAborted: "silent",
    });
    return attempt;
  }
}
