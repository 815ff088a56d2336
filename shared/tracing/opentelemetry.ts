import { hostname } from "node:os";
import * as api from "@opentelemetry/api";
import { ExportResultCode, parseKeyPairsIntoRecord, parseTraceParent } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { AlwaysOnSampler, BatchSpanProcessor, type SpanExporter, TracerProvider } from "@opentelemetry/sdk-trace";
import type { Shutdown } from "../concurrency/shutdown.ts";
import { waitFor } from "../concurrency/wait-for.ts";
import type { Config } from "../config.ts";
import { type Log, throttledWarning } from "../log.ts";
import type { Metrics } from "../metrics.ts";
import type { RequestSpans, Spans, Step, Tracing } from "./spans.ts";

/** Exports spans over OTLP. A collector that is slow or away costs spans, and no time of a search. */

// A process begins no more traces than this, whatever share is set and whatever callers send.
const tracesPerSecondMax = 100;
// Waiting or under way. Further ones are dropped.
const spansMax = 4_096;
const spansPerExportMax = 512;
const exportPauseMs = 1_000;
const exportTimeoutMs = 5_000;
const closeTimeoutMs = 2_000;

export interface TracingParts {
  config: Config;
  metrics: Metrics;
  log: Log;
  shutdown: Shutdown;
}

/** Opens the export. The shutdown exports what is left, for two seconds at most. */
export function openTelemetry(
  { config, metrics, log, shutdown }: TracingParts,
  { endpoint, serviceName }: { endpoint: string; serviceName: string },
): Tracing {
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/+$/, "")}/v1/traces`,
    headers: parseKeyPairsIntoRecord(config.OTEL_EXPORTER_OTLP_HEADERS),
    timeoutMillis: exportTimeoutMs,
  });
  const bounded = new BoundedExporter(exporter, metrics, log);
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      "service.name": serviceName,
      "host.name": hostname(),
      "process.pid": process.pid,
    }),
    // A search that is not sampled does not come so far.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: bounded,
        maxQueueSize: spansMax,
        maxExportBatchSize: spansPerExportMax,
        scheduledDelayMillis: exportPauseMs,
        exportTimeoutMillis: 2 * exportTimeoutMs,
      }),
    ],
  });
  const parts = { tracer: provider.getTracer("serpmill"), bounded };
  const isSampled = openSampler(config);
  shutdown.register("tracing", () =>
    waitFor(provider.shutdown(), { timeoutMs: closeTimeoutMs }).catch(() => undefined),
  );
  return {
    begin({ traceparent, startedAtMs }) {
      const caller = parse(traceparent);
      return isSampled(caller) ? beginRequest(parts, caller, startedAtMs) : undefined;
    },
    resume(traceparent) {
      const request = parse(traceparent);
      return request && spansOf(parts, request);
    },
  };
}

const parse = (traceparent = ""): api.SpanContext | undefined => parseTraceParent(traceparent) ?? undefined;

/**
 * Decides by chance, not by the trace id as the SDK does: callers choose that id. With `parentbased_` the caller decides if it sent
 * a trace.
 */
function openSampler({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: ratio }: Config) {
  const root = sampler.replace("parentbased_", "");
  const share = { always_on: 1, always_off: 0 }[root] ?? ratio;
  let secondBeganAtMs = Number.NEGATIVE_INFINITY;
  let begun = 0;
  return (caller: api.SpanContext | undefined): boolean => {
    const isWanted =
      caller && root !== sampler ? (caller.traceFlags & api.TraceFlags.SAMPLED) !== 0 : Math.random() < share;
    if (!isWanted) return false;
    if (performance.now() - secondBeganAtMs >= 1_000) {
      secondBeganAtMs = performance.now();
      begun = 0;
    }
    begun += 1;
    return begun <= tracesPerSecondMax;
  };
}

/** Passes spans on, and knows how many are waiting or under way. The SDK does not say which it drops. */
class BoundedExporter implements SpanExporter {
  readonly #exporter: SpanExporter;
  readonly #count: Metrics["traceSpans"];
  readonly #warn: (error: unknown) => void;
  #spans = 0;

  constructor(exporter: SpanExporter, metrics: Metrics, log: Log) {
    this.#exporter = exporter;
    this.#count = metrics.traceSpans;
    this.#warn = throttledWarning(log, "spans were not exported to OTEL_EXPORTER_OTLP_ENDPOINT");
  }

  /** @returns whether there is room for one more span, which then has to be ended. */
  admit(): boolean {
    if (this.#spans < spansMax) this.#spans += 1;
    else {
      this.#count.inc({ outcome: "dropped" });
      return false;
    }
    return true;
  }

  export(...[spans, done]: Parameters<SpanExporter["export"]>): void {
    this.#exporter.export(spans, (result) => {
      this.#spans -= spans.length;
      const isExported = result.code === ExportResultCode.SUCCESS;
      this.#count.inc({ outcome: isExported ? "exported" : "failed" }, spans.length);
      if (!isExported) this.#warn(result.error);
      done(result);
    });
  }

  shutdown(): Promise<void> {
    return this.#exporter.shutdown();
  }
}

const kinds: Partial<Record<Step, api.SpanKind>> = {
  queue: api.SpanKind.CONSUMER,
  "provider call": api.SpanKind.CLIENT,
};

type Parts = { tracer: api.Tracer; bounded: BoundedExporter };

/** To be added to `performance.now()`. Read for each search: the time of day may be set while a process runs. */
const originMs = () => Date.now() - performance.now();

/** Begins the span of an HTTP request, below that of its caller if that sent one. */
function beginRequest(parts: Parts, caller: api.SpanContext | undefined, startedAtMs: number): RequestSpans {
  const origin = originMs();
  const options = { kind: api.SpanKind.SERVER, startTime: origin + startedAtMs };
  const span = parts.tracer.startSpan("HTTP", options, caller ? below(caller) : api.ROOT_CONTEXT);
  return {
    ...spansOf(parts, span.spanContext(), origin),
    end({ method, route, status, requestId, outcome }) {
      if (!parts.bounded.admit()) return;
      span.updateName(`${method} ${route}`);
      span.setAttributes({
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "serpmill.request_id": requestId,
        ...attributesOf({ outcome }),
      });
      if (status >= 500) span.setStatus({ code: api.SpanStatusCode.ERROR });
      span.end(origin + performance.now());
    },
  };
}

function spansOf({ tracer, bounded }: Parts, request: api.SpanContext, origin = originMs()): Spans {
  const context = below(request);
  return {
    traceparent: `00-${request.traceId}-${request.spanId}-01`,
    add(step, startedAtMs, fields) {
      if (!bounded.admit()) return;
      const options = {
        kind: kinds[step] ?? api.SpanKind.INTERNAL,
        startTime: origin + startedAtMs,
        attributes: attributesOf(fields),
      };
      const span = tracer.startSpan(step, options, context);
      if (step === "provider call" && fields["outcome"] !== "ok") span.setStatus({ code: api.SpanStatusCode.ERROR });
      span.end(origin + performance.now());
    },
  };
}

const below = (parent: api.SpanContext) => api.trace.setSpanContext(api.ROOT_CONTEXT, { ...parent, isRemote: true });

const attributesOf = (fields: Readonly<Record<string, string | undefined>>) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [`serpmill.${name}`, value]));
