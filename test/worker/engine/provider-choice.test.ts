import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../../shared/config.ts";
import type { EngineAnswer } from "../../../worker/engine/engine-answer.ts";
import type { Provider } from "../../../shared/providers/provider.ts";
import { openSandbox } from "../../../shared/providers/sandbox/sandbox.ts";
import { openSerper } from "../../../shared/providers/serper/serper.ts";
import { googleOver, openGoogle } from "../../harness/processes/google-engine.ts";
import { engineConfig, query } from "../../harness/fixtures/queries.ts";
import { hang, raw, refusal, type Reply, type SerperStub, startSerperStub } from "../../harness/stubs/serper-stub.ts";

const deadlineMs = 20_000;
const key = "secret-key-of-a-test";

let stub: SerperStub;
let serper: Provider;

beforeEach(async () => {
  stub = await startSerperStub();
  serper = openSerper(engineConfig({ SERPER_API_KEY: key, SERPER_BASE_URL: stub.url }));
});
afterEach(() => stub.close());

function searchAt(fields: object, ...providers: Provider[]): Promise<EngineAnswer> {
  return googleOver(...providers).search(query(fields), deadlineMs);
}

test.each<[string, Reply]>([
  ["an empty account", refusal(400, "Not enough credits")],
  ["a forbidden query", refusal(400, "Query pattern not allowed for free accounts.")],
  ["a page of HTML", raw(200, "<html>")],
  ["an error of its own", refusal(500, "Oops")],
])("with %s at the first provider the second one answers", async (_, failing) => {
  stub.otherwise = failing;
  const answer = await googleOver(serper, openSandbox()).search(query(), deadlineMs);
  expect(answer.ok && answer.results.length).toBeGreaterThan(10);
  expect(answer.trace.provider).toBe("sandbox");
});

test("what a provider charged for a failure is its own cost, and not that of the one who answered", async () => {
  const billed: Provider = { ...serper, read: () => ({ failure: "blocked", costMicroUsd: 2_000 }) };
  const { trace } = await googleOver(billed, openSandbox()).search(query(), deadlineMs);
  expect(trace).toMatchObject({
    provider: "sandbox",
    costMicroUsd: 2_000,
    calls: [
      { provider: "serper", costMicroUsd: 2_000 },
      { provider: "sandbox", costMicroUsd: 0 },
    ],
  });
});

test("a provider that does not answer in its time is given up for the next", async () => {
  stub.otherwise = hang;
  const impatient = { ...serper, callTimeoutMs: 100 };
  const answer = await googleOver(impatient, openSandbox()).search(query(), deadlineMs);
  expect(answer.trace.calls.map(({ provider, outcome }) => [provider, outcome])).toEqual([
    ["serper", "timeout"],
    ["sandbox", "ok"],
  ]);
});

test("when the last provider does not answer in its time, the search timed out", async () => {
  const google = googleOver(serper, { ...openSandbox(), callTimeoutMs: 50 });
  stub.otherwise = refusal(403, "Unauthorized.");
  expect(await google.search(query({ keyword: "sandbox:timeout" }), deadlineMs)).toMatchObject({
    code: "engine_timeout",
  });
});

test("a query that every provider forbids is the query's fault; where one only failed, it is not", async () => {
  stub.otherwise = refusal(400, "Query pattern not allowed for free accounts.");
  expect(await searchAt({ keyword: '"pump"' }, serper)).toMatchObject({
    ok: false,
    code: "query_rejected",
    details: { reason: "refused_by_provider", field: "keyword" },
  });
  const both = googleOver(openSandbox(), serper);
  expect(await both.search(query({ keyword: "sandbox:error" }), deadlineMs)).toMatchObject({
    code: "engine_error",
    details: { reason: "provider_unavailable" },
  });
});

test("a provider is never asked for less than was ordered", async () => {
  const answer = await googleOver(serper, openSandbox()).search(query({ device: "mobile" }), deadlineMs);
  expect(answer.trace).toMatchObject({ provider: "sandbox", calls: [{ provider: "sandbox" }] });
  expect(stub.requests).toEqual([]);
});

test("a query that nobody can honour names the field, and costs nothing", async () => {
  const countryOnly = { ...openSandbox(), can: { mobile: true, city: false } };
  expect(await searchAt({ device: "mobile" }, serper)).toMatchObject({
    code: "query_rejected",
    details: { reason: "unsupported", field: "device" },
    trace: { calls: [], costMicroUsd: 0 },
  });
  const lyon = { location: "Lyon, France" };
  expect(await searchAt(lyon, countryOnly)).toMatchObject({ details: { field: "location" } });
  expect(await searchAt({ ...lyon, device: "mobile" }, countryOnly, serper)).toMatchObject({
    details: { field: "device" },
  });
});

test("the order of SERP_PROVIDERS is the order of asking, and a missing setting stops the start", async () => {
  const settings = { SERP_PROVIDERS: "serper,sandbox,serper", SERPER_BASE_URL: stub.url };
  expect(() => openGoogle(settings)).toThrow(ConfigError);
  stub.otherwise = refusal(403, "Unauthorized.");
  const google = openGoogle({ ...settings, SERPER_API_KEY: key });
  onTestFinished(() => google.close());
  const { trace } = await google.search(query(), deadlineMs);
  expect(trace.calls.map(({ provider }) => provider)).toEqual(["serper", "sandbox"]);
});
