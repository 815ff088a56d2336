import { afterAll, expect, test } from "vitest";
import { queueKeys } from "../../shared/queue/search-queue.ts";
import { seesWorkers } from "../harness/assertions/metrics.ts";
import { Service } from "../harness/processes/service.ts";
import { type ReceivedSpan, startCollectorStub } from "../harness/stubs/collector-stub.ts";
import { refusal, startSerperStub, tenOrganic } from "../harness/stubs/serper-stub.ts";

/** What an operator's collector receives of searches, from an API and a worker as they run in production. */

/** Has a process log each module of OpenTelemetry's SDK that it loads. prom-client always loads the interface `api`. */
const hook = `import { registerHooks } from "node:module";
import { writeSync } from "node:fs";
registerHooks({ load: (url, context, next) => {
  if (url.includes("@opentelemetry/") && !url.includes("@opentelemetry/api/")) writeSync(1, '{"msg":"loaded"}\\n');
  return next(url, context);
} });`;
const reporting = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hook)}` };

const [serper, collector] = await Promise.all([startSerperStub(), startCollectorStub()]);
const service = await Service.start({
  environment: {
    ...serper.settings,
    ...reporting,
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/tenant/`,
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20canary",
    OTEL_TRACES_SAMPLER: "always_on",
  },
});
afterAll(() => Promise.all([service.stop(), serper.close(), collector.close()]));

// Between two processes, as each knows the clock of Redis: on a busy machine many milliseconds, and less than the call takes.
const clockDifferenceNs = 90_000_000n;
const roundingNs = 1_000_000n;

/** Waits until the collector has all spans of these searches. */
async function spansOf(requestIds: readonly string[]): Promise<Map<string, ReceivedSpan[]>> {
  const isOf = (id: string) => (span: ReceivedSpan) => span.attributes["serpmill.request_id"] === id;
  const whole = (id: string) => {
    const traceId = collector.spans.find(isOf(id))?.traceId;
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    return spans.some(({ name }) => name === "settlement") && traceId !== undefined ? spans : undefined;
  };
  await service.until(async () => requestIds.every((id) => whole(id)));
  return new Map(requestIds.map((id) => [id, whole(id) ?? []]));
}

const compare = (one: number, other: number) => one - other;
const named = (spans: readonly ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);
const headersOf = (token: string) => ({ authorization: `Bearer ${token}`, "content-type": "application/json" });

test("a search is one trace of its caller, with the times of each step and nothing that names anyone", async () => {
  const { organizationId, token, tokenId } = await service.organization();
  serper.next.push(refusal(500, "down"), (request, response) => void setTimeout(tenOrganic, 100, request, response));
  const answer = await service.send("/v1/serp/search", {
    method: "POST",
    headers: { ...headersOf(token), traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00" },
    body: JSON.stringify({ keyword: "canary keyword" }),
  });
  expect(answer.status).toBe(200);
  const spans = (await spansOf([answer.body.requestId])).get(answer.body.requestId) ?? [];

  const [http, admission, queue, settlement, delivery] = [
    ["POST /v1/serp/search", "serpmill-api", 2],
    ["admission", "serpmill-api", 1],
    ["queue", "serpmill-worker", 5],
    ["settlement", "serpmill-worker", 1],
    ["delivery", "serpmill-api", 1],
  ].map(([name, from, spanKind]) => {
    const [span, ...more] = named(spans, String(name));
    if (!span || more.length > 0) throw new Error(`expected one span ${String(name)}`);
    expect(span).toMatchObject({ service: from, kind: spanKind, isError: false });
    return span;
  });
  const [failed, called] = named(spans, "provider call");
  if (!http || !admission || !queue || !settlement || !delivery || !failed || !called) throw new Error("spans missing");
  expect(spans).toHaveLength(7);
  expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set(["4bf92f3577b34da6a3ce929d0e0e4736"]));
  expect(http.parentSpanId).toBe("00f067aa0ba902b7");
  for (const span of spans) expect(span.parentSpanId).toBe(span === http ? "00f067aa0ba902b7" : http.spanId);

  expect(http.attributes).toEqual({
    "http.request.method": "POST",
    "http.route": "/v1/serp/search",
    "http.response.status_code": 200,
    "serpmill.request_id": answer.body.requestId,
    "serpmill.outcome": "answered",
  });
  expect(admission.attributes).toEqual({ "serpmill.outcome": "held" });
  expect(settlement.attributes).toMatchObject({ "serpmill.decided": "charge", "serpmill.from": "provider" });
  expect(delivery.attributes).toEqual({ "serpmill.outcome": "delivered" });
  expect([failed, called]).toMatchObject([
    { kind: 3, isError: true, attributes: { "serpmill.provider": "serper", "serpmill.outcome": "unavailable" } },
    { kind: 3, isError: false, attributes: { "serpmill.provider": "serper", "serpmill.outcome": "ok" } },
  ]);

  const inOrder = [http, admission, queue, failed, called, settlement];
  for (const [place, span] of inOrder.entries()) {
    expect(span.endedAt).toBeGreaterThanOrEqual(span.startedAt);
    const before = inOrder[place - 1] ?? http;
    const earliest = before === http ? http.startedAt : before.endedAt;
    const toleranceNs = span.service === before.service ? roundingNs : clockDifferenceNs;
    expect(span.startedAt).toBeGreaterThanOrEqual(earliest - toleranceNs);
  }
  expect(called.endedAt - called.startedAt).toBeGreaterThanOrEqual(99_000_000n);
  expect(delivery.endedAt).toBeLessThanOrEqual(http.endedAt);

  const sent = collector.requests.map(({ body }) => body.toString("latin1")).join("\n");
  for (const secret of [token, tokenId, organizationId, "canary", "pumps.example"]) expect(sent).not.toContain(secret);
  expect(collector.requests[0]).toMatchObject({
    path: "/tenant/v1/traces",
    headers: { authorization: "Bearer canary", "content-type": "application/x-protobuf" },
  });
});

test("searches that share a batch or an answer have a trace each, and only the first one has the call", async () => {
  const { token } = await service.organization();
  const release = serper.hold();
  const keywords = ["shared", "shared", "other", "another", "one more"];
  const searches = keywords.map((keyword) => service.search(token, { keyword }));
  await service.untilRunning(keywords.length);
  release();
  const ids = (await Promise.all(searches)).map(({ body }) => String(body.requestId));
  const traces = [...(await spansOf(ids)).values()];

  expect(new Set(traces.map(([span]) => span?.traceId)).size).toBe(keywords.length);
  expect(traces.map((spans) => named(spans, "queue").length)).toEqual([1, 1, 1, 1, 1]);
  const calls = traces.map((spans) => named(spans, "provider call").length);
  const froms = traces.map((spans) => named(spans, "settlement")[0]?.attributes["serpmill.from"]);
  expect([...calls.slice(0, 2).toSorted(compare), ...calls.slice(2)]).toEqual([0, 1, 1, 1, 1]);
  expect(froms.map((from) => (from === "shared" ? 0 : 1))).toEqual(calls);
  const flightsOf = traces.slice(0, 2).map((spans) => named(spans, "settlement")[0]?.attributes["serpmill.flight"]);
  expect(flightsOf[0]).toEqual(expect.any(String));
  expect(flightsOf[1]).toBe(flightsOf[0]);
});

test("a search that is refused has the reason in its trace, and one without a valid token has none", async () => {
  const { token } = await service.organization({ creditMils: 1 });
  const refused = await service.search(token, { keyword: "pump" });
  expect(refused.status).toBe(402);
  expect((await service.search("sk_wrong", { keyword: "pump" })).status).toBe(401);
  await service.until(async () =>
    collector.spans.some(
      ({ name, attributes }) => name === "admission" && attributes["serpmill.outcome"] === "out_of_credits",
    ),
  );
  const routes = collector.spans.filter(({ attributes }) => attributes["http.response.status_code"] === 401);
  expect(routes).toEqual([]);
});

test("without a collector no code of OpenTelemetry is loaded, and no job has a trace", async () => {
  await Promise.all([...service.apis, ...service.workers].map((running) => running.line("loaded")));
  await Promise.all(service.workers.splice(0).map((worker) => worker.stop()));
  const off = { OTEL_EXPORTER_OTLP_ENDPOINT: "" };
  const [worker, api] = [await service.startWorker(off), await service.startApi(off)];
  await service.until(() => seesWorkers(api));
  const { token } = await service.organization();
  const release = serper.hold();
  const searched = service.search(token, { keyword: "pump" }, { api: 1 });
  await service.untilRunning(1);
  const [requestId = ""] = await service.redis.lrange(queueKeys.running, 0, 0);
  const job = await service.redis.hget(queueKeys.job(requestId), "data");
  release();
  expect((await searched).status).toBe(200);
  expect(job).toContain(requestId);
  expect(job).not.toContain("traceparent");
  expect([worker, api].flatMap(({ lines }) => lines).filter(({ msg }) => msg === "loaded")).toEqual([]);
});
