import type { FailureKind } from "../provider.ts";

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
};

export function newTrace(): Trace {
  return { provider: "", calls: [], costMicroUsd: 0 };
}

export function recordCall(trace: Trace, call: ProviderCall): void {
  trace.calls.push(call);
  trace.costMicroUsd += call.costMicroUsd;
}
