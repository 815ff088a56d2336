import { afterAll, beforeEach, expect, test } from "vitest";
import { Shutdown } from "../../../shared/concurrency/shutdown.ts";
import { openLog } from "../../../shared/log.ts";
import { openMetrics } from "../../../shared/metrics.ts";
import { openTracing } from "../../../shared/process/start-process.ts";
import { engineConfig } from "../../harness/fixtures/queries.ts";
import { type CollectorStub, startCollectorStub } from "../../harness/stubs/collector-stub.ts";

/** Which searches are traced, and what a collector that is away costs. */

const collector = await startCollectorStub();
const silent = await startCollectorStub({ isSilent: true });
afterAll(() => Promise.all([collector.close(), silent.close()]));
beforeEach(() => void collector.spans.splice(0));

const log = openLog({ name: "test", level: "silent" });
const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const sampled = `00-${traceId}-00f067aa0ba902b7-01`;
const unsampled = `00-${traceId}-00f067aa0ba902b7-00`;

async function open(settings: Record<string, string>, { url }: Pick<CollectorStub, "url"> = collector) {
  const config = engineConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: url, ...settings });
  const [metrics, shutdown] = [openMetrics(), new Shutdown()];
  const tracing = await openTracing({ config, metrics, log, shutdown }, "api");
  const counts = async () => {
    const { values } = await metrics.traceSpans.get();
    return Object.fromEntries(values.map(({ labels, value }) => [labels.outcome, value]));
  };
  /** How many of so many searches are traced. */
  const traced = (traceparent: string | undefined, searches = 1) =>
    Array.from({ length: searches }, () => tracing.begin({ traceparent, startedAtMs: 0 })).filter(Boolean).length;
  return { tracing, traced, counts, close: () => shutdown.run(log) };
}

test("callers that always send sampled traces get none beyond the operator's share", async () => {
  const none = await open({ OTEL_TRACES_SAMPLER_ARG: "0" });
  expect(none.traced(sampled, 1_000)).toBe(0);
  // All of the SDK's own ratios would sample an id of zeros.
  const { traced } = await open({ OTEL_TRACES_SAMPLER_ARG: "0.000000001" });
  expect(traced("00-00000000000000000000000000000001-00f067aa0ba902b7-01", 1_000)).toBe(0);
  expect((await open({ OTEL_TRACES_SAMPLER: "always_off" })).traced(sampled)).toBe(0);
});

test("with parentbased_ a caller decides about its own traces, and the share about all others", async () => {
  const { traced } = await open({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0" });
  expect([traced(sampled), traced(unsampled), traced(undefined), traced("00-0-0-01")]).toEqual([1, 0, 0, 0]);
  const all = await open({ OTEL_TRACES_SAMPLER: "parentbased_always_on" });
  expect([all.traced(sampled), all.traced(unsampled), all.traced(undefined)]).toEqual([1, 0, 1]);
});

test("a process begins at most a hundred traces a second, whatever callers send", async () => {
  const { traced } = await open({ OTEL_TRACES_SAMPLER: "parentbased_always_on" });
  expect(traced(sampled, 5_000)).toBeLessThanOrEqual(200);
});

test.each(["", "00-0-0-01", `00-${"0".repeat(32)}-00f067aa0ba902b7-01`, `${sampled}-more`, `${sampled}, ${sampled}`])(
  "a traceparent that is not valid begins a trace of our own: %s",
  async (traceparent) => {
    const { tracing, close } = await open({ OTEL_TRACES_SAMPLER: "always_on" });
    const spans = tracing.begin({ traceparent, startedAtMs: performance.now() });
    spans?.end({ method: "POST", route: "/v1/serp/search", status: 503, requestId: "req_1", outcome: "unavailable" });
    await close();
    expect(collector.spans).toMatchObject([{ parentSpanId: "", isError: true }]);
    expect(collector.spans[0]?.traceId).not.toBe(traceId);
    expect(tracing.resume(traceparent)).toBeUndefined();
  },
);

test("spans that a collector does not take are dropped beyond a bound, counted, and do not delay the shutdown", async () => {
  const { tracing, counts, close } = await open({}, silent);
  const spans = tracing.resume(sampled);
  for (let added = 0; added < 5_000; added += 1) spans?.add("queue", performance.now(), {});
  expect(await counts()).toEqual({ exported: 0, failed: 0, dropped: 904 });
  await close();
  // The requests to the collector have not even failed yet.
  expect(await counts()).toMatchObject({ failed: 0 });
});

test("spans that were lost with a collector are counted, and the next ones arrive", async () => {
  const gone = await startCollectorStub();
  await gone.close();
  const lost = await open({}, gone);
  lost.tracing.resume(sampled)?.add("queue", performance.now(), {});
  await expect.poll(lost.counts).toEqual({ exported: 0, failed: 1, dropped: 0 });

  const { tracing, counts, close } = await open({ OTEL_SERVICE_NAME: "serp" });
  tracing.resume(sampled)?.add("provider call", performance.now() - 250, { provider: "serper", outcome: "timeout" });
  await close();
  expect(await counts()).toEqual({ exported: 1, failed: 0, dropped: 0 });
  const [span] = collector.spans;
  expect(span).toMatchObject({
    service: "serp",
    name: "provider call",
    traceId,
    parentSpanId: "00f067aa0ba902b7",
    isError: true,
    attributes: { "serpmill.provider": "serper", "serpmill.outcome": "timeout" },
  });
  const tookMs = Number((span?.endedAt ?? 0n) - (span?.startedAt ?? 0n)) / 1e6;
  expect(tookMs).toBeGreaterThanOrEqual(249);
});
