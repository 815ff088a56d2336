import type { PageAnswer, PageOutcome, Provider } from "../provider.ts";
import { type Attempt, cancellationFailure, minCallMs } from "./attempt.ts";
import type { ProviderHttp } from "./http.ts";
import { type ProviderCall, recordCall } from "./trace.ts";

const serviceUnavailable = 503;
const newestShare = 0.1;
// Answers scatter: a call with less than this many times the mean often times out at a provider that works.
const enough = 2;

/** How a call ended. `answer` is undefined if none came. */
type Ended = { outcome: PageOutcome; answer: PageAnswer | undefined };

/**
 * One call to a provider for one page: the adapter's request, HTTP, the adapter's reading. Records its outcome, duration
 * and cost in the trace, and the raw answer if the attempt has a recorder. Never throws.
 */
export async function callForPage(
  attempt: Attempt,
  pageNumber: number,
  called: { provider: Provider; http: ProviderHttp; answerTime: AnswerTime },
): Promise<PageOutcome> {
  const startedAtMs = performance.now();
  const remainingMs = attempt.deadlineAtMs - startedAtMs;
  if (attempt.disconnected?.aborted) return { failure: "dropped", outOfTime: true };
  // The wait for a bulkhead slot may have used the time up.
  if (remainingMs < minCallMs) return { failure: "busy", outOfTime: true };
  const { outcome, answer } = await send(attempt, pageNumber, { ...called, remainingMs });
  const tookMs = performance.now() - startedAtMs;
  if (!("failure" in outcome)) called.answerTime.answered(tookMs);
  const call: ProviderCall = {
    provider: called.provider.name,
    outcome: "failure" in outcome ? outcome.failure : "ok",
    ms: Math.round(tookMs),
    costMicroUsd: outcome.costMicroUsd ?? 0,
  };
  recordCall(attempt.trace, call);
  attempt.recorder?.record(call, { pageNumber, answer });
  return outcome;
}

async function send(
  attempt: Attempt,
  pageNumber: number,
  {
    provider,
    http,
    answerTime,
    remainingMs,
  }: { provider: Provider; http: ProviderHttp; answerTime: AnswerTime; remainingMs: number },
): Promise<Ended> {
  const { signal } = attempt.cancellation;
  const timeoutMs = Math.min(provider.callTimeoutMs, remainingMs);
  let answer: PageAnswer | undefined;
  try {
    const sent = await http.send(provider, provider.request(attempt.query, pageNumber), { timeoutMs, signal });
    if (!("failure" in sent)) answer = sent;
    if (signal.aborted) return { outcome: cancellationFailure(attempt), answer };
    if (!("failure" in sent)) return { outcome: read(provider, sent), answer };
    if (sent.failure !== "timeout") return { outcome: sent, answer };
    const outOfTime = remainingMs < provider.callTimeoutMs;
    const failure = outOfTime && answerTime.isMoreThan(remainingMs) ? "out_of_time" : "timeout";
    return { outcome: { failure, outOfTime }, answer };
  } catch {
    // An adapter that throws met an answer that its author did not foresee. For the caller it is an unreadable answer.
    return { outcome: { failure: "unreadable" }, answer };
  }
}

/** Adapters tell apart what a caller can notice. Whether a 5xx was a 503 matters to the limit of calls alone. */
function read(provider: Provider, answer: PageAnswer): PageOutcome {
  const outcome = provider.read(answer);
  return "failure" in outcome && answer.status === serviceUnavailable ? { ...outcome, overloaded: true } : outcome;
}

/** How long one provider usually takes for a page, in this process: the moving average of the calls that were answered. */
export class AnswerTime {
  #meanMs: number | undefined;

  answered(ms: number): void {
    this.#meanMs = this.#meanMs === undefined ? ms : this.#meanMs + (ms - this.#meanMs) * newestShare;
  }

  /** Whether a call with this time-out ends too early to tell whether the provider works. False before the first answer. */
  isMoreThan(timeoutMs: number): boolean {
    return this.#meanMs !== undefined && timeoutMs < this.#meanMs * enough;
  }
}
