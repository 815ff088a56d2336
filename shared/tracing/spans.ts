/**
 * Traces of searches, for OpenTelemetry. What a search records is here; opentelemetry.ts exports it, and is loaded only if
 * OTEL_EXPORTER_OTLP_ENDPOINT is set. Each search has spans of its own with its own times, also for steps that a batch takes
 * for several searches at once. Spans have ids and outcomes: never a keyword, a token, an organization or an address.
 */

/** The steps of a search that get a span, below that of its HTTP request. */
export type Step = "admission" | "queue" | "provider call" | "settlement" | "delivery";

/** The spans of one search that is traced, as one process adds to them. */
export interface Spans {
  /** The span of the search's HTTP request, as W3C Trace Context writes it: with it another process goes on. */
  readonly traceparent: string;
  /**
   * Adds a step that ends now. Never waits or throws.
   * @param startedAtMs on the clock of `performance.now()`.
   */
  add(step: Step, startedAtMs: number, attributes: Readonly<Record<string, string | undefined>>): void;
}

/** The spans of a search in the API, which also has the span of the HTTP request. */
export interface RequestSpans extends Spans {
  end(request: { method: string; route: string; status: number; requestId: string; outcome: string | undefined }): void;
}

export interface Tracing {
  /**
   * Begins the spans of a search whose caller is known: no other request can have something exported.
   * @param sent.traceparent the header of the request. If it is valid, the caller's trace is continued.
   * @returns undefined if the search is not sampled.
   */
  begin(sent: { traceparent: string | undefined; startedAtMs: number }): RequestSpans | undefined;
  /** Goes on with the spans of a search that another process has begun. @param traceparent absent if it is not sampled. */
  resume(traceparent: string | undefined): Spans | undefined;
}

export const noTracing: Tracing = { begin: () => undefined, resume: () => undefined };
