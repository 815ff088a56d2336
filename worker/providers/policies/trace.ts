import type { FailureKind, PageAnswer } from "../provider.ts";

/** One call to a provider. `outcome` is a label value of `provider_calls_total`. `ms` counts from sending to the end. */
export type ProviderCall = { provider: string; outcome: "ok" | FailureKind; ms: number; costMicroUsd: number };

/** What a search cost and which providers it called, for the log line and the metrics. */
export type Trace = {
  /** The provider that answered; without an answer, the provider that was tried last. */
  provider: string;
  /** In the order in which the calls ended. */
  calls: ProviderCall[];
  /** The sum over all calls, including those of attempts that failed. */
  costMicroUsd: number;
  /** The request id of the search that made the calls. Absent unless their raw answers are kept. */
  callsOf?: string | undefined;
};

/** Keeps the calls of one search with their raw answers, for debugging. */
export type CallRecorder = {
  requestId: string;
  /** Returns at once and never throws. `answer` is absent if none came. */
  record: (call: ProviderCall, page: { pageNumber: number; answer: PageAnswer | undefined }) => void;
};

export function newTrace(recorder?: CallRecorder): Trace {
  return { provider: "", calls: [], costMicroUsd: 0, ...(recorder && { callsOf: recorder.requestId }) };
}

export function recordCall(trace: Trace, call: ProviderCall): void {
  trace.calls.push(call);
  trace.costMicroUsd += call.costMicroUsd;
}
