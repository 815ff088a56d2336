import type { PageAnswer, PageOutcome, Provider } from "../provider.ts";
import { type Attempt, cancellationFailure, minCallMs } from "./attempt.ts";
import type { ProviderHttp } from "./http.ts";
import { recordCall } from "./trace.ts";

const serviceUnavailable = 503;

/**
 * One call to a provider for one page: the adapter's request, HTTP, the adapter's reading. Records its outcome, duration
 * and cost in the trace. Never throws.
 */
export async function callForPage(
  attempt: Attempt,
  pageNumber: number,
  { provider, http }: { provider: Provider; http: ProviderHttp },
): Promise<PageOutcome> {
  const startedAtMs = performance.now();
  const remainingMs = attempt.deadlineAtMs - startedAtMs;
  if (attempt.abandoned?.aborted) return { failure: "dropped", outOfTime: true };
  // The wait for a bulkhead slot may have used the time up.
  if (remainingMs < minCallMs) return { failure: "busy", outOfTime: true };
  const outcome = await call(attempt, pageNumber, { provider, http, remainingMs });
  recordCall(attempt.trace, {
    provider: provider.name,
    outcome: "failure" in outcome ? outcome.failure : "ok",
    ms: Math.round(performance.now() - startedAtMs),
    costMicroUsd: outcome.costMicroUsd ?? 0,
  });
  return outcome;
}

async function call(
  attempt: Attempt,
  pageNumber: number,
  { provider, http, remainingMs }: { provider: Provider; http: ProviderHttp; remainingMs: number },
): Promise<PageOutcome> {
  const { signal } = attempt.cancellation;
  const timeoutMs = Math.min(provider.callTimeoutMs, remainingMs);
  try {
    const answer = await http.send(provider, provider.request(attempt.query, pageNumber), { timeoutMs, signal });
    if (signal.aborted) return cancellationFailure(attempt);
    if (!("failure" in answer)) return read(provider, answer);
    return answer.failure === "timeout" ? { ...answer, outOfTime: remainingMs < provider.callTimeoutMs } : answer;
  } catch {
    // An adapter that throws met an answer that its author did not foresee. For the caller it is an unreadable answer.
    return { failure: "unreadable" };
  }
}

/** Adapters tell apart what a caller can notice. Whether a 5xx was a 503 matters to the limit of calls alone. */
function read(provider: Provider, answer: PageAnswer): PageOutcome {
  const outcome = provider.read(answer);
  return "failure" in outcome && answer.status === serviceUnavailable ? { ...outcome, overloaded: true } : outcome;
}
