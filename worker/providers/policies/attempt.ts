import type { Spans } from "../../../shared/tracing/spans.ts";
import type { Failure, FailureKind, PageAnswer, ProviderQuery } from "../provider.ts";

/** No call is sent with less time left than this: the provider would bill it, and its answer would come too late. */
export const minCallMs = 50;

/** What all calls of one search have in common. */
export type CallOptions = {
  /** Aborted once no caller waits for the search. No further call is sent then; calls already sent end normally. */
  disconnected?: AbortSignal | undefined;
  /** Decide when the calls get a slot. Absent: as for an organization without any other search. */
  claims?: SlotClaims | undefined;
  /** Absent unless raw answers are kept. */
  recorder?: CallRecorder | undefined;
  /** Absent unless the search is traced. */
  spans?: Spans | undefined;
};

/** An organization, and how many searches it has open, which may change while its calls wait. */
export type SlotClaim = { organizationId: string; openSearches: number };

/** Gives a call that waits for a slot a place for an organization, or takes it away. */
type Places = { enter: (claim: SlotClaim) => void; leave: (claim: SlotClaim) => void };

/**
 * The claims of searches that share their calls. Equal searches join and leave while the calls wait for a slot. A waiting call has a
 * place for each of the organizations, and takes the first slot that any of them gets: no search waits longer than it would alone.
 */
export class SlotClaims {
  readonly #claims: SlotClaim[];
  readonly #waiting = new Set<Places>();

  constructor(first: SlotClaim) {
    this.#claims = [first];
  }

  /** The claim with the fewest open searches. */
  get fewest(): SlotClaim {
    return this.#claims.reduce((one, other) => (other.openSearches < one.openSearches ? other : one));
  }

  join(claim: SlotClaim): void {
    if (!this.#has(claim)) for (const call of this.#waiting) call.enter(claim);
    this.#claims.push(claim);
  }

  /** The last claim stays: no call waits for it any more. */
  leave(claim: SlotClaim): void {
    if (this.#claims.length === 1) return;
    this.#claims.splice(this.#claims.indexOf(claim), 1);
    if (!this.#has(claim)) for (const call of this.#waiting) call.leave(claim);
  }

  /** Gives a call its places. @returns a function after which organizations that join give it no further ones. */
  wait(call: Places): () => void {
    const byOrganization = new Map(this.#claims.map((claim) => [claim.organizationId, claim]));
    for (const claim of byOrganization.values()) call.enter(claim);
    this.#waiting.add(call);
    return () => this.#waiting.delete(call);
  }

  #has({ organizationId }: SlotClaim): boolean {
    return this.#claims.some((claim) => claim.organizationId === organizationId);
  }
}

/** Keeps the calls of one search with their raw answers, for debugging. */
export type CallRecorder = {
  requestId: string;
  /** Returns at once and never throws. `answer` is absent if none came. */
  record: (call: ProviderCall, page: { pageNumber: number; answer: PageAnswer | undefined }) => void;
};

/** One call to a provider. `outcome` is a label value of `provider_calls_total`. `ms` counts from sending to the end. */
type ProviderCall = {
  provider: string;
  outcome: "ok" | FailureKind;
  ms: number;
  costMicroUsd: number;
  /** Of a call beside those for the pages. */
  isOverview?: boolean;
};

/** What a search cost and which providers it called, for the log line and the metrics. */
export type Trace = {
  /** The provider that answered; without an answer, the provider that was tried last. */
  provider: string;
  /** In the order that the calls ended. */
  calls: ProviderCall[];
  /** The sum over all calls, including those of attempts that failed. */
  costMicroUsd: number;
  /** The request id of the search that made the calls. Absent unless their raw answers are kept. */
  callsOf?: string | undefined;
};

export function newTrace(recorder?: CallRecorder): Trace {
  return { provider: "", calls: [], costMicroUsd: 0, ...(recorder && { callsOf: recorder.requestId }) };
}

/** One search at one provider: all its pages and retries, and the waits for a bulkhead slot. */
export type Attempt = CallOptions & {
  query: ProviderQuery;
  /** Covers the whole attempt. On the clock of `performance.now()`. */
  deadlineAtMs: number;
  /** Aborted by {@link cancelAttempt} only, so that the reason is always a {@link Failure}. */
  cancellation: AbortController;
  /** Whether its first page has arrived. A provider that has sent one is not slow, so it is not hedged. */
  hasFirstPage: boolean;
  /** Collects the calls and the cost, whether or not the attempt succeeds. */
  trace: Trace;
};

export function openAttempt(options: Omit<Attempt, "cancellation" | "hasFirstPage">): Attempt {
  return { ...options, cancellation: new AbortController(), hasFirstPage: false };
}

/** Ends all calls and waits of an attempt. What is still running ends with this kind of failure. */
export function cancelAttempt({ cancellation }: Attempt, kind: FailureKind): void {
  cancellation.abort({ failure: kind } satisfies Failure);
}

/** Aborted when no further call may be sent: the attempt was cancelled, or its caller disconnected. */
export function noFurtherCall({ cancellation, disconnected }: Attempt): AbortSignal {
  if (!disconnected) return cancellation.signal;
  // AbortSignal.any() would keep its listeners until a full garbage collection. Both signals end with the search.
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
