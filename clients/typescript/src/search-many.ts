import type { PendingAnswer, SearchRequest } from "./answers.ts";
import { type CodedError, pause } from "./call.ts";
import { SerpmillError } from "./errors.ts";
import type { CallOptions } from "./serpmill.ts";

// The searches in flight that the plan `free` allows.
const inFlightDefault = 5;

export interface ManyOptions extends Omit<CallOptions, "idempotencyKey"> {
  /** How many searches run at once; 5 by default. */
  inFlightMax?: number;
  /** The key of each search. With keys that a second run makes again, that run pays for nothing that this one has paid. */
  idempotencyKey?: (request: SearchRequest, index: number) => string;
}

/** How a search ended. `isReplay`: an earlier request under the same key had paid for its answer. */
type Ended<Answer> = { request: SearchRequest; index: number } & (
  | { answer: Answer; isReplay: boolean; error?: never }
  | { error: CodedError; answer?: never; isReplay?: never }
);

/** The next search with its key, or the end of the requests. */
type Taken = { request: SearchRequest; key?: { idempotencyKey: string } } | { done: true };
/** What the caller's code threw, or what was thrown about its values. */
type Failed = { failure: unknown };
type Run<Answer> = Ended<Answer> | (Failed & { index: number });

/** How one of many searches ended. `index` is the request's position, from 0; `progress` is how many have ended by now. */
export type ManyOutcome<Answer> = Ended<Answer> & { progress: { done: number; failed: number; inFlight: number } };

/**
 * Runs searches, a few at once, and yields each as it ends, also one that fails. It starts none while the rate window is used
 * up. When none of the rest could succeed, it starts no more, yields those that run, and throws the error.
 * @throws {SerpmillError} if the caller aborts, the token is not valid, the plan has no searches, or, unless the caller gives
 * the keys, the credit is used up. What the source of the requests or `idempotencyKey` throws.
 */
export async function* searchMany<Answer>(
  search: (request: SearchRequest, options: CallOptions) => PendingAnswer<Answer>,
  requests: Iterable<SearchRequest> | AsyncIterable<SearchRequest>,
  { inFlightMax = inFlightDefault, idempotencyKey, ...options }: ManyOptions,
): AsyncGenerator<ManyOutcome<Answer>, void, undefined> {
  const source = iterate(requests);
  const window = new RateWindow();
  const stop = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stop.signal]) : stop.signal;
  const run = async (request: SearchRequest, index: number, key?: CallOptions): Promise<Run<Answer>> => {
    window.count();
    try {
      const reply = await search(request, { ...options, ...key, signal }).withResponse();
      window.read(reply.headers, index + 1);
      return { request, index, answer: reply.data, isReplay: reply.isReplay };
    } catch (error) {
      // A code that a newer API added is not in the type, whose comment says so.
      if (error instanceof SerpmillError) return { request, index, error: error as CodedError };
      return { failure: error, index };
    }
  };
  const take = async (): Promise<Taken> => {
    const { done, value: request } = await source.next();
    if (done) return { done };
    const key = idempotencyKey && { idempotencyKey: idempotencyKey(request, started) };
    await pause(window.waitMs(), signal);
    return { request, ...(key && { key }) };
  };

  const running = new Map<number, Promise<Run<Answer>>>();
  const progress = { done: 0, failed: 0, inFlight: 0 };
  let started = 0;
  let taking: Promise<Taken | Failed> | undefined;
  let isLast = false;
  let fatal: Failed | undefined;
  try {
    while (!isLast || running.size > 0) {
      if (!isLast && running.size < inFlightMax) taking ??= take().catch((failure: unknown) => ({ failure }));
      const pending: Promise<Run<Answer> | Taken | Failed>[] = [...running.values()];
      if (taking && !isLast) pending.push(taking);
      const first = await Promise.race(pending);
      if ("index" in first) running.delete(first.index);
      else taking = undefined;
      if ("failure" in first) {
        [fatal, isLast] = [fatal ?? first, true];
        continue;
      }
      if (!("index" in first)) {
        if ("done" in first) isLast = true;
        else running.set(started, run(first.request, started++, first.key));
        continue;
      }
      const hasAnswers = progress.done > progress.failed;
      if (first.error && endsAll(first.error, { hasOwnKeys: idempotencyKey !== undefined, hasAnswers }))
        [fatal, isLast] = [fatal ?? { failure: first.error }, true];
      progress.done += 1;
      progress.failed += first.error ? 1 : 0;
      yield { ...first, progress: { ...progress, inFlight: running.size } };
    }
    if (fatal) throw fatal.failure;
  } finally {
    stop.abort();
    void source.return().catch(() => undefined); // A source that waits for its next request returns only afterwards.
  }
}

async function* iterate<Item>(items: Iterable<Item> | AsyncIterable<Item>): AsyncGenerator<Item, void, void> {
  yield* items;
}

/**
 * Without credit the searches can still succeed that an earlier run paid under the caller's own keys. What another server or a
 * wrong path would answer ends them, unless a search was answered before: then it is about this one search.
 */
const endsAll = ({ code, details }: SerpmillError, given: { hasOwnKeys: boolean; hasAnswers: boolean }) =>
  ["aborted", "unauthenticated"].includes(code) ||
  (["unexpected_reply", "not_found", "method_not_allowed"].includes(code) && !given.hasAnswers) ||
  (code === "out_of_credits" && !given.hasOwnKeys) ||
  (code === "plan_required" && !("maxDepth" in details));

/** What is left of the organization's rate window, as the newest answer told it, less what was started since. */
class RateWindow {
  #started = 0;
  #left = Infinity;
  #endsAtMs = 0;

  /** Counts a search that starts now. */
  count(): void {
    this.#started += 1;
    this.#left -= 1;
  }

  /** Reads the state that the answer to the search with this number has, from 1. */
  read(headers: Headers, number: number): void {
    const [, left, seconds] = /r=(\d+);t=(\d+)/.exec(headers.get("ratelimit") ?? "") ?? [];
    if (left === undefined) return;
    this.#left = Number(left) - (this.#started - number);
    this.#endsAtMs = performance.now() + Number(seconds) * 1_000;
  }

  /** How long no search may start. */
  waitMs(): number {
    return this.#left > 0 ? 0 : Math.max(0, this.#endsAtMs - performance.now());
  }
}
