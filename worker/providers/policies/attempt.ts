import type { Failure, FailureKind, ProviderQuery } from "../provider.ts";
import type { CallRecorder, Trace } from "./trace.ts";

/** No call is sent with less time left than this: the provider would bill it, and its answer would come too late. */
export const minCallMs = 50;

/** By which the calls of a search get a bulkhead slot: its organization, and the open searches of that when it was admitted. */
export type SlotClaim = { organizationId: string; openSearches: number };

const onlySearch: SlotClaim = { organizationId: "", openSearches: 1 };

/** One search at one provider: all its pages and retries, and the waits for a bulkhead slot. */
export type Attempt = {
  query: ProviderQuery;
  /** Covers the whole attempt. On the clock of `performance.now()`. */
  deadlineAtMs: number;
  /** Aborted by {@link cancelAttempt} only, so that the reason is always a {@link Failure}. */
  cancellation: AbortController;
  /** Whether its first page has arrived. A provider that has sent one is not slow, so it is not hedged. */
  hasFirstPage: boolean;
  /** Aborted when no caller waits any more: no further call is sent, and those that were sent end normally. */
  disconnected: AbortSignal | undefined;
  claim: SlotClaim;
  /** Collects the calls and the cost, whether or not the attempt succeeds. */
  trace: Trace;
  /** Absent unless raw answers are kept. */
  recorder: CallRecorder | undefined;
};

export function openAttempt(
  options: Pick<Attempt, "query" | "deadlineAtMs" | "trace"> &
    Partial<Pick<Attempt, "disconnected" | "recorder"> & { claim: SlotClaim | undefined }>,
): Attempt {
  return {
    disconnected: undefined,
    recorder: undefined,
    ...options,
    claim: options.claim ?? onlySearch,
    cancellation: new AbortController(),
    hasFirstPage: false,
  };
}

/** Ends all calls and waits of an attempt. What is still running ends with this kind of failure. */
export function cancelAttempt({ cancellation }: Attempt, kind: FailureKind): void {
  cancellation.abort({ failure: kind } satisfies Failure);
}

/** Aborted when no further call may be sent: the attempt was cancelled, or its caller disconnected. */
export function noFurtherCall({ cancellation, disconnected }: Attempt): AbortSignal {
  if (!disconnected) return cancellation.signal;
  // Not AbortSignal.any(): Node keeps what listens to its signal until a full garbage collection. Both signals end with the search.
  const either = new AbortController();
  for (const signal of [cancellation.signal, disconnected]) {
    if (signal.aborted) either.abort(signal.reason);
    else signal.addEventListener("abort", () => either.abort(signal.reason), { once: true });
  }
  return either.signal;
}

/** The failure that a cancelled attempt ends with. */
export function cancellationFailure({ cancellation }: Attempt): Failure {
  // Only cancelAttempt() aborts, and it passes a Failure.
  return cancellation.signal.reason as Failure;
}
